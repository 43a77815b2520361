//! The newest orders for each server that is reached over the network, for the connections that wait for them.
//!
//! Orders are all that a server is to have, so only the newest matter: each server has one place, which holds one document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch::{self, Receiver, Sender};

use crate::protocol::Orders;

/// The place of one server.
type Place = Sender<Arc<Orders>>;

/// The places of all servers that orders were put out for. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    places: Arc<Mutex<BTreeMap<String, Place>>>,
}

impl Mail {
    fn places(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts out orders for a server, in place of the last, and wakes the connections that wait for them.
    pub(crate) fn put(&self, server: &str, orders: Orders) {
        let orders = Arc::new(orders);
        let mut places = self.places();
        match places.get(server) {
            Some(place) => drop(place.send_replace(orders)),
            None => drop(places.insert(server.to_owned(), watch::channel(orders).0)),
        }
    }

    /// The newest orders for a server and the ones that follow; none before there were any.
    pub(crate) fn of(&self, server: &str) -> Option<Receiver<Arc<Orders>>> {
        self.places().get(server).map(Sender::subscribe)
    }
}

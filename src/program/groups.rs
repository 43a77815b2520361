//! Classes that are updated while jobs come and go; the result is the same as grouping all jobs anew.

use super::classes::{Classes, Unlike};

/// A division of jobs into classes in the order of their keys, as [`Classes::group`] makes it. When a job is removed, the last
/// job takes its position.
#[derive(Clone, Debug)]
pub struct Groups {
    width: usize,
    /// Keys of the classes, ascending: [classes × width].
    keys: Vec<u64>,
    /// Jobs of each class, ascending.
    members: Vec<Vec<u32>>,
    /// The class of each job: `[n]`.
    class_of: Vec<u32>,
}

impl Groups {
    /// An empty division, for keys of `width` words.
    pub fn new(width: usize) -> Self {
        Self { width, keys: Vec::new(), members: Vec::new(), class_of: Vec::new() }
    }

    /// The division of `n` jobs, grouped at once; `write` puts a job's key into `width` words.
    ///
    /// # Panics
    /// If there are 2^32 jobs or more.
    pub fn of(n: usize, width: usize, write: impl FnMut(usize, &mut [u64])) -> Self {
        let (classes, keys) = Classes::group(n, width, Unlike::ByKey, write);
        let mut groups = Self::new(width);
        for class in 0..classes.len() {
            groups.keys.extend_from_slice(keys.of_class(class));
            groups.members.push(classes.members(class).to_vec());
        }
        groups.class_of = (0..n).map(|job| as_u32(classes.class_of(job))).collect();
        groups
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The class of a job.
    pub fn class_of(&self, job: usize) -> usize {
        self.class_of[job] as usize
    }

    /// The class of every job: `[n]`.
    pub fn of_jobs(&self) -> &[u32] {
        &self.class_of
    }

    /// Adds a job at the end and returns its class.
    ///
    /// # Panics
    /// If the key has another width, or there are 2^32 jobs.
    pub fn insert(&mut self, key: &[u64]) -> usize {
        assert_eq!(key.len(), self.width, "keys have one width");
        let job = as_u32(self.class_of.len());
        let class = self.join(job, key);
        self.class_of.push(as_u32(class));
        class
    }

    /// Removes a job; the last one takes its position.
    ///
    /// # Panics
    /// If there is no such job.
    pub fn swap_remove(&mut self, job: usize) {
        self.leave(job);
        let last = self.class_of.len() - 1;
        if job < last {
            let members = &mut self.members[self.class_of[last] as usize];
            members.pop();
            let place = members.partition_point(|other| (*other as usize) < job);
            members.insert(place, as_u32(job));
        }
        self.class_of.swap_remove(job);
    }

    /// Gives a job another key and returns its class.
    ///
    /// # Panics
    /// If there is no such job, or the key has another width.
    pub fn update(&mut self, job: usize, key: &[u64]) -> usize {
        let class = self.class_of(job);
        if self.key(class) == key {
            return class;
        }
        self.leave(job);
        let class = self.join(as_u32(job), key);
        self.class_of[job] = as_u32(class);
        class
    }

    /// The classes as they are now.
    pub fn classes(&self) -> Classes {
        Classes::from_members(&self.members, self.class_of.clone())
    }

    /// The key of a class: `[width]`.
    pub fn key(&self, class: usize) -> &[u64] {
        &self.keys[class * self.width..(class + 1) * self.width]
    }

    /// Puts a job into the class of a key, which is made if there is none.
    fn join(&mut self, job: u32, key: &[u64]) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            if self.key(middle) < key { from = middle + 1 } else { to = middle }
        }
        if from == self.len() || self.key(from) != key {
            let at = from * self.width;
            self.keys.splice(at..at, key.iter().copied());
            self.members.insert(from, Vec::new());
            self.class_of.iter_mut().for_each(|class| *class += u32::from(*class as usize >= from));
        }
        let members = &mut self.members[from];
        let place = members.partition_point(|other| *other < job);
        members.insert(place, job);
        from
    }

    /// Removes a job from its class, and the class with its last job.
    fn leave(&mut self, job: usize) {
        let class = self.class_of(job);
        let members = &mut self.members[class];
        let place = members.partition_point(|other| (*other as usize) < job);
        members.remove(place);
        if members.is_empty() {
            let at = class * self.width;
            self.keys.drain(at..at + self.width);
            self.members.remove(class);
            self.class_of.iter_mut().for_each(|other| *other -= u32::from(*other as usize > class));
        }
    }
}

fn as_u32(position: usize) -> u32 {
    u32::try_from(position).expect("fewer than 2^32 jobs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Edit {
        Insert(u64),
        Remove(usize),
        Update(usize, u64),
    }

    fn edits() -> impl Strategy<Value = Vec<Edit>> {
        let edit = prop_oneof![
            (0_u64..12).prop_map(Edit::Insert),
            (0_usize..1000).prop_map(Edit::Remove),
            (0_usize..1000, 0_u64..12).prop_map(|(job, key)| Edit::Update(job, key)),
        ];
        prop::collection::vec(edit, 0..120)
    }

    proptest! {
        #[test]
        fn kept_classes_are_those_that_grouping_anew_gives(
            first in prop::collection::vec(0_u64..12, 0..40),
            edits in edits(),
        ) {
            let mut keys = first;
            let mut groups = Groups::of(keys.len(), 1, |job, key| key[0] = keys[job]);
            for edit in edits {
                match edit {
                    Edit::Insert(key) => {
                        keys.push(key);
                        groups.insert(&[key]);
                    }
                    Edit::Remove(job) if !keys.is_empty() => {
                        let job = job % keys.len();
                        keys.swap_remove(job);
                        groups.swap_remove(job);
                    }
                    Edit::Update(job, key) if !keys.is_empty() => {
                        let job = job % keys.len();
                        keys[job] = key;
                        groups.update(job, &[key]);
                    }
                    Edit::Remove(_) | Edit::Update(..) => {}
                }
                let (anew, _) = Classes::group(keys.len(), 1, Unlike::ByKey, |job, key| key[0] = keys[job]);
                prop_assert_eq!(groups.classes(), anew);
            }
        }
    }
}

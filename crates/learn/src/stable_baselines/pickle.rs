//! Reader of the part of Python's pickle that a dictionary of arrays saved by PyTorch needs. Nothing is ever executed.

use std::collections::BTreeMap;

/// A value on the reader's stack.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object {
    /// None, a boolean, or an object of which the value does not matter.
    Nothing,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(String),
    /// A tuple or a list.
    Sequence(Vec<Object>),
    /// A dictionary, in order.
    Dictionary(Vec<(Object, Object)>),
    /// The name of a function.
    Global(String),
    /// An array's memory: its kind, and the key of its entry.
    Storage { kind: String, key: String },
    /// An array: memory, offset, shape and strides.
    Array { storage: Box<Object>, offset: i64, shape: Vec<Object>, strides: Vec<Object> },
    /// The beginning of a group.
    Mark,
}

/// Reads the object of a pickle.
pub(super) fn read(bytes: &[u8]) -> Result<Object, String> {
    Reader { bytes, at: 0, stack: Vec::new(), memo: BTreeMap::new(), n_copied: 0 }.run()
}

/// The most values that may be copied to or from the memo. No array needs nearly as many, and a short pickle can ask for any number
/// by storing pairs of pairs.
const COPIES_MAX: usize = 1_000_000;

/// The largest depth of nested values, which are walked through recursively. An array has a depth of four.
const DEPTH_MAX: usize = 32;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Object>,
    memo: BTreeMap<u32, Object>,
    n_copied: usize,
}

impl Object {
    /// The number of values in the object, itself included.
    fn count(&self) -> usize {
        let all = |objects: &[Self]| objects.iter().map(Self::count).sum::<usize>();
        1 + match self {
            Self::Sequence(objects) => all(objects),
            Self::Dictionary(items) => items.iter().map(|(key, value)| key.count() + value.count()).sum(),
            Self::Array { storage, shape, strides, .. } => storage.count() + all(shape) + all(strides),
            _ => 0,
        }
    }

    /// The depth of nested values in the object, itself included.
    fn depth(&self) -> usize {
        let deepest = |objects: &[Self]| objects.iter().map(Self::depth).max().unwrap_or(0);
        1 + match self {
            Self::Sequence(objects) => deepest(objects),
            Self::Dictionary(items) => {
                items.iter().map(|(key, value)| key.depth().max(value.depth())).max().unwrap_or(0)
            }
            // Neither the memory nor the extents of an array hold other values.
            Self::Array { .. } => 1,
            _ => 0,
        }
    }
}

/// The values, if they are shallow enough to be put into another.
fn shallow(objects: Vec<Object>) -> Result<Vec<Object>, String> {
    if objects.iter().any(|object| object.depth() >= DEPTH_MAX) {
        return Err(format!("its pickle nests values more than {DEPTH_MAX} deep"));
    }
    Ok(objects)
}

impl<'a> Reader<'a> {
    fn run(mut self) -> Result<Object, String> {
        loop {
            let place = self.at;
            let [code] = self.take_array()?;
            if code == b'.' {
                return self.pop();
            }
            if !(self.push_constant(code)? || self.remember(code)? || self.build(code)?) {
                return Err(format!(
                    "its pickle has an instruction {code:#04x} at byte {place} that no arrays need"
                ));
            }
        }
    }

    /// Executes an instruction that pushes a value, or does nothing. False if it is another instruction.
    fn push_constant(&mut self, code: u8) -> Result<bool, String> {
        let object = match code {
            // PROTO and FRAME are not needed.
            0x80 => return self.take(1).map(|_| true),
            0x95 => return self.take(8).map(|_| true),
            b'N' | 0x88 | 0x89 => Object::Nothing,
            b'(' => Object::Mark,
            b'}' => Object::Dictionary(Vec::new()),
            b']' | b')' => Object::Sequence(Vec::new()),
            b'K' => Object::Integer(i64::from(self.take_array::<1>()?[0])),
            b'M' => Object::Integer(i64::from(u16::from_le_bytes(self.take_array()?))),
            b'J' => Object::Integer(i64::from(i32::from_le_bytes(self.take_array()?))),
            0x8a => {
                let [length] = self.take_array()?;
                Object::Integer(long(self.take(usize::from(length))?)?)
            }
            b'G' => self.take(8).map(|_| Object::Nothing)?,
            b'X' => {
                let length = u32::from_le_bytes(self.take_array()?);
                Object::Text(self.text(length as usize)?)
            }
            0x8c => {
                let [length] = self.take_array()?;
                Object::Text(self.text(usize::from(length))?)
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                Object::Global(format!("{module}.{name}"))
            }
            _ => return Ok(false),
        };
        self.stack.push(object);
        Ok(true)
    }

    /// Executes an instruction that stores the top of the stack in the memo, or fetches from it. False if it is another
    /// instruction.
    fn remember(&mut self, code: u8) -> Result<bool, String> {
        let key = match code {
            b'q' | b'h' => u32::from(self.take_array::<1>()?[0]),
            b'r' | b'j' => u32::from_le_bytes(self.take_array()?),
            0x94 => u32::try_from(self.memo.len()).unwrap_or(u32::MAX),
            _ => return Ok(false),
        };
        let fetches = matches!(code, b'h' | b'j');
        let object = if fetches { self.memo.get(&key) } else { self.stack.last() };
        let object = object.ok_or(if fetches { "its pickle fetches what it has not kept" } else { EMPTY })?;
        self.n_copied += object.count();
        if self.n_copied > COPIES_MAX {
            return Err("its pickle copies more than any array needs".to_owned());
        }
        let object = object.clone();
        if fetches {
            self.stack.push(object);
        } else {
            self.memo.insert(key, object);
        }
        Ok(true)
    }

    /// Executes an instruction that makes one value of others. False if it is another instruction.
    fn build(&mut self, code: u8) -> Result<bool, String> {
        let object = match code {
            b't' | b'l' => Object::Sequence(self.group()?),
            0x85..=0x87 => {
                let n = usize::from(code - 0x84);
                let from = self.stack.len().checked_sub(n).ok_or(EMPTY)?;
                Object::Sequence(shallow(self.stack.split_off(from))?)
            }
            0x93 => match (self.pop()?, self.pop()?) {
                (Object::Text(name), Object::Text(module)) => Object::Global(format!("{module}.{name}")),
                _ => return Err("its pickle names something by no text".to_owned()),
            },
            b'Q' => storage(self.pop()?)?,
            b'R' => {
                let (arguments, called) = (self.pop()?, self.pop()?);
                call(&called, arguments)?
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(shallow(vec![key, value])?)?
            }
            b'u' => {
                let items = self.group()?;
                self.set_items(items)?
            }
            b'a' | b'e' => {
                let items = if code == b'e' { self.group()? } else { shallow(vec![self.pop()?])? };
                match self.pop()? {
                    Object::Sequence(mut sequence) => {
                        sequence.extend(items);
                        Object::Sequence(sequence)
                    }
                    _ => return Err("its pickle appends to no list".to_owned()),
                }
            }
            // BUILD: attributes of an object, such as the dictionary's versions of modules, which are dropped.
            b'b' => {
                self.pop()?;
                self.pop()?
            }
            _ => return Ok(false),
        };
        self.stack.push(object);
        Ok(true)
    }

    fn set_items(&mut self, items: Vec<Object>) -> Result<Object, String> {
        let Object::Dictionary(mut dictionary) = self.pop()? else {
            return Err("its pickle sets items of no dictionary".to_owned());
        };
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            dictionary.push((key, value));
        }
        Ok(Object::Dictionary(dictionary))
    }

    /// Takes all values since the last mark, and the mark, off the stack.
    fn group(&mut self) -> Result<Vec<Object>, String> {
        let mark = self.stack.iter().rposition(|object| *object == Object::Mark);
        let mark = mark.ok_or("its pickle ends a group that it has not begun")?;
        let group = self.stack.split_off(mark + 1);
        self.stack.pop();
        shallow(group)
    }

    fn pop(&mut self) -> Result<Object, String> {
        self.stack.pop().ok_or_else(|| EMPTY.to_owned())
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len());
        let taken = &self.bytes[self.at..end.ok_or("its pickle is cut off")?];
        self.at += n;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| "its pickle is cut off".to_owned())
    }

    fn text(&mut self, length: usize) -> Result<String, String> {
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| "its pickle has text that is not UTF-8".to_owned())
    }

    fn line(&mut self) -> Result<String, String> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').ok_or("its pickle is cut off")?;
        let text = self.text(length)?;
        self.at += 1;
        Ok(text)
    }
}

const EMPTY: &str = "its pickle takes from an empty stack";

/// A little-endian integer in two's complement.
fn long(bytes: &[u8]) -> Result<i64, String> {
    if bytes.len() > 8 {
        return Err("its pickle has an integer of more than 64 bits".to_owned());
    }
    let sign = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut whole = [sign; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    Ok(i64::from_le_bytes(whole))
}

/// The memory that a persistent id refers to: `('storage', kind, key, place, count)`.
fn storage(identity: Object) -> Result<Object, String> {
    if let Object::Sequence(parts) = identity
        && let [Object::Text(what), Object::Global(kind), Object::Text(key), ..] = parts.as_slice()
        && what == "storage"
    {
        return Ok(Object::Storage { kind: kind.clone(), key: key.clone() });
    }
    Err("its pickle refers to something that is no array's memory".to_owned())
}

/// The result of a call, for the few functions that arrays need.
fn call(called: &Object, arguments: Object) -> Result<Object, String> {
    let (Object::Global(name), Object::Sequence(mut arguments)) = (called, arguments) else {
        return Err("its pickle calls something that is no name".to_owned());
    };
    match (name.as_str(), arguments.as_slice()) {
        ("collections.OrderedDict", []) => Ok(Object::Dictionary(Vec::new())),
        ("torch._utils._rebuild_parameter", [_, ..]) => Ok(arguments.swap_remove(0)),
        (
            "torch._utils._rebuild_tensor_v2",
            [
                storage @ Object::Storage { .. },
                Object::Integer(offset),
                Object::Sequence(shape),
                Object::Sequence(strides),
                ..,
            ],
        ) => Ok(Object::Array {
            storage: Box::new(storage.clone()),
            offset: *offset,
            shape: shape.clone(),
            strides: strides.clone(),
        }),
        _ => Err(format!("its pickle calls `{name}`, which no arrays need")),
    }
}

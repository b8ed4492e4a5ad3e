//! Parses pairs of events: `FROM,TO[:KEY]`.

use std::time::Duration;

use crate::Error;
use crate::record::events::pmu;
use crate::record::events::uprobe::{self, Uprobe};
use crate::record::events::value::TracepointField;

/// Two events, and how they are paired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairSpec {
    /// The option that selected the pair, for messages.
    pub option: &'static str,
    /// The event that begins a pair.
    pub from: PairEvent,
    /// The event that ends it.
    pub to: PairEvent,
    /// True if both events happen in one thread.
    pub in_thread: bool,
    /// True if the stack is that of the first event.
    pub takes_first_stack: bool,
    /// Shorter pairs are left out.
    pub over: Duration,
}

/// An event of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairEvent {
    /// A tracepoint.
    Tracepoint {
        /// The subsystem of the tracepoint.
        subsystem: String,
        /// The name of the tracepoint.
        event: String,
        /// The position of each field of the key.
        fields: Vec<FieldPosition>,
    },
    /// The call of a function.
    Call(Uprobe),
    /// The return of a function.
    Return(Uprobe),
}

/// The position of a field in the record of a tracepoint, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPosition {
    /// The offset of the field.
    pub offset: usize,
    /// The size of the field.
    pub size: usize,
}

/// The largest number of fields of a key, beside the thread.
const MAX_FIELDS: usize = 2;

/// The parts of a key: whether the thread is one, and the names of fields in both events.
struct Key<'a> {
    in_thread: bool,
    fields: Vec<(&'a str, &'a str)>,
}

impl PairSpec {
    /// Parses `FROM,TO[:KEY]`, which `option` has selected. `first_stack` says which stack is taken: by default that of the
    /// first event if the second is a return or happens in another thread, and else that of the second.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is malformed, or an event or a field does not exist; [`Error::Invalid`] if a program has no
    /// such function; [`Error::System`] if tracefs cannot be read.
    pub fn parse(option: &'static str, text: &str, first_stack: Option<bool>, over: Duration) -> Result<Self, Error> {
        let (from, to) = split_pair(text).ok_or_else(|| {
            Error::Usage(format!(
                "{option} {text}: expected FROM,TO or FROM,TO:KEY, such as \
                 syscalls:sys_enter_fsync,syscalls:sys_exit_fsync"
            ))
        })?;
        let (to, key) = split_key(to);
        let key = Key::parse(key.unwrap_or("tid")).ok_or_else(|| {
            Error::Usage(format!("{option} {text}: a key is tid, up to two fields, or both, such as dev+sector"))
        })?;
        let (from_fields, to_fields): (Vec<&str>, Vec<&str>) = key.fields.iter().copied().unzip();
        let from = PairEvent::parse(from, &from_fields).map_err(|error| name_option(option, error))?;
        let to = PairEvent::parse(to, &to_fields).map_err(|error| name_option(option, error))?;
        if let PairEvent::Return(_) = from {
            return Err(Error::Usage(format!("{option} {text}: a pair cannot begin with the return of a function")));
        }
        // A function that has returned is no part of the stack any more.
        let is_return = matches!(to, PairEvent::Return(_));
        let takes_first_stack = first_stack.unwrap_or(!key.in_thread || is_return);
        Ok(Self { option, from, to, in_thread: key.in_thread, takes_first_stack, over })
    }

    /// True for the calls of a function with their returns.
    pub fn is_call_of_one_function(&self) -> bool {
        matches!((&self.from, &self.to), (PairEvent::Call(call), PairEvent::Return(end)) if call == end)
    }

    /// Returns the pair of I/O requests to block devices, as the kernel accounts them.
    pub fn io_requests() -> &'static str {
        // Since Linux 6.5.
        match pmu::read_tracepoint_file("block", "block_io_start", "id") {
            Ok(_) => "block:block_io_start,block:block_io_done:dev+sector",
            Err(_) => "block:block_rq_issue,block:block_rq_complete:dev+sector",
        }
    }
}

/// Puts an option in the place of `-e` in the message of an event.
fn name_option(option: &str, error: Error) -> Error {
    let rename = |what: String| format!("{option}: {}", what.trim_start_matches("-e "));
    match error {
        Error::Usage(what) => Error::Usage(rename(what)),
        Error::Invalid(what) => Error::Invalid(rename(what)),
        Error::System(what) => Error::System(rename(what)),
        other => other,
    }
}

fn split_pair(text: &str) -> Option<(&str, &str)> {
    if !uprobe::is_function(text) {
        return text.split_once(',');
    }
    let (from, to) = uprobe::split_list(text);
    Some((from, to?))
}

/// Splits the name of an event with a key at its end. Keys follow tracepoints only.
fn split_key(text: &str) -> (&str, Option<&str>) {
    match text.match_indices(':').nth(1) {
        Some((colon, _)) if !uprobe::is_function(text) => (&text[..colon], Some(&text[colon + 1..])),
        _ => (text, None),
    }
}

impl<'a> Key<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (threads, fields): (Vec<&str>, Vec<&str>) = text.split('+').partition(|part| *part == "tid");
        let fields = fields.into_iter().map(|field| field.split_once('=').unwrap_or((field, field)));
        let fields: Vec<(&str, &str)> = fields.collect();
        let is_named = fields.iter().all(|(from, to)| !from.is_empty() && !to.is_empty());
        (is_named && fields.len() <= MAX_FIELDS && threads.len() <= 1)
            .then_some(Self { in_thread: !threads.is_empty(), fields })
    }
}

impl PairEvent {
    fn parse(text: &str, key: &[&str]) -> Result<Self, Error> {
        let (call, end) = (text.strip_prefix("uprobe:"), text.strip_prefix("uretprobe:"));
        match (call, end) {
            (None, None) => {}
            _ if !key.is_empty() => {
                return Err(Error::Usage(format!("{text}: a function has no fields; leave out the key")));
            }
            (Some(probe), _) => return Ok(Self::Call(Uprobe::parse(probe)?)),
            (None, Some(probe)) => return Ok(Self::Return(Uprobe::parse(probe)?)),
        }
        let Some((subsystem, event)) = text.split_once(':') else {
            return Err(Error::Usage(format!(
                "{text}: no such event; expected a tracepoint (SUBSYSTEM:EVENT), uprobe:PATH:SYMBOL or \
                 uretprobe:PATH:SYMBOL"
            )));
        };
        let format = pmu::read_tracepoint_file(subsystem, event, "format")?;
        let known = TracepointField::list(&format);
        let fields = key.iter().map(|name| {
            let field = known.iter().find(|field| field.name() == *name).ok_or_else(|| {
                let names = known.iter().map(TracepointField::name).collect::<Vec<_>>().join(", ");
                Error::Usage(format!("{text} has no numeric field {name}; it has {names}"))
            })?;
            Ok(FieldPosition { offset: field.offset(), size: field.size() })
        });
        let fields = fields.collect::<Result<_, Error>>()?;
        Ok(Self::Tracepoint { subsystem: subsystem.to_owned(), event: event.to_owned(), fields })
    }

    /// Returns the fields of the key.
    pub fn fields(&self) -> &[FieldPosition] {
        match self {
            Self::Tracepoint { fields, .. } => fields,
            Self::Call(_) | Self::Return(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, split_key};

    #[test]
    fn a_key_follows_a_tracepoint() {
        assert_eq!(split_key("block:done:dev+sector"), ("block:done", Some("dev+sector")));
        assert_eq!(split_key("block:done"), ("block:done", None));
        assert_eq!(split_key("uretprobe:/bin/a:f"), ("uretprobe:/bin/a:f", None));
    }

    fn parse(text: &str) -> Option<(bool, Vec<(&str, &str)>)> {
        Key::parse(text).map(|key| (key.in_thread, key.fields))
    }

    #[test]
    fn parses_keys() {
        assert_eq!(parse("tid"), Some((true, vec![])));
        assert_eq!(parse("dev+sector"), Some((false, vec![("dev", "dev"), ("sector", "sector")])));
        assert_eq!(parse("pid=next_pid+tid"), Some((true, vec![("pid", "next_pid")])));
        for wrong in ["", "a+b+c", "tid+tid", "=b", "a=", "a+"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}

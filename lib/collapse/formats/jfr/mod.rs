//! Recordings of the Java Flight Recorder (`.jfr`), which the JVM (from JDK 9, and 8u262) and async-profiler write.
//!
//! A recording is a sequence of chunks. Each has metadata, which describe its types of events; constants, such as
//! stacks; and events. Any event with a stack is a sample. The default events are those of the first of these groups of
//! which there are any: samples of CPU time (`cpu`), of all time (`wall`), allocations (`alloc`, `nativemem`), waits for
//! locks (`lock`), live objects (`live`) and samples in native code (`native`). `--event` names a group or an event.
//!
//! A sample of CPU time weighs 1, an allocation the bytes that it represents, and any other event its duration in
//! nanoseconds, or 1 if it has none. The root frame is the thread, without its number in a thread pool. `--label FIELD`
//! adds a field of the event, such as `objectClass`. Lines are left out unless `--srcline` asks for them.
//!
//! Files are read chunk by chunk: the memory depends on the constants of one chunk. Sources: `jdk.jfr.internal.consumer`
//! of the JDK.

mod chunk;
mod constants;
mod events;
mod keys;
mod metadata;
mod reader;
mod source;
mod stacks;
mod sums;
mod wire;

use rustc_hash::FxHashMap;

use self::chunk::Chunk;
pub(super) use self::events::{EVENTS, printed_weight, select_types};
use self::events::{EventType, EventTypes, is_cpu_group, is_first_default, is_group};
use self::reader::Reader;
pub(super) use self::reader::{describe_untimed, kind_suffix};
use self::source::{MAGIC, Recording, Window};
use self::wire::Cursor;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::filter::args::EventChoice;
use crate::collapse::filter::event::EventFilter;
use crate::collapse::format::{Format, FormatReader, Recognizer};
use crate::collapse::sink::Sink;

pub(super) static FORMAT: Format = Format {
    name: "jfr",
    description: "Java Flight Recorder (JDK 8u262 and later, async-profiler)",
    tested_with: "JDK 8, 11, 17, 21 and 25",
    has_times: true,
    has_labels: true,
    counts_samples: true,
    recognizer: Recognizer::Head(|head| head.starts_with(MAGIC)),
    reader: FormatReader::Bytes(read),
};

/// The oldest major version whose types describe themselves. Oracle's JDK 7 and 8 write version 0.9.
const FIRST_VERSION: u16 = 1;

fn read(document: &mut Document<'_>, sink: &mut Sink) -> Result<(), Error> {
    let mut recording = Recording::open(document)?;
    let name = document.name().to_owned();
    let mut window = Window::new(&mut recording, &name);
    if let Some(selected) = select_events(document, &mut window)? {
        document.events = EventFilter::for_names(selected);
    }
    let mut reader = Reader::new(document);
    let damage =
        for_each_chunk(&mut window, |chunk, window| reader.read_chunk(chunk, window, document, sink).map(|()| true))?;
    reader.finish(document)?;
    match damage {
        Some(Damage::Foreign(offset)) => {
            let rest = window.read(offset, SNIFFED_BYTES)?;
            document.check_nothing_follows(offset, rest)
        }
        Some(Damage::Text(what)) => {
            document.report_damage(&what, sink.is_input_empty() && document.events.seen().is_empty())
        }
        None => Ok(()),
    }
}

/// The reason why a recording is not read to the end of its file.
enum Damage {
    Text(String),
    /// Something else than a chunk follows its last chunk, at this offset.
    Foreign(u64),
}

/// Number of bytes by which another document is recognized.
const SNIFFED_BYTES: usize = 4096;

/// Calls `visit` with each chunk until it returns false. Returns what is wrong with the recording, if it cannot be read
/// to its end.
fn for_each_chunk<'w>(
    window: &mut Window<'w>,
    mut visit: impl FnMut(&Chunk, &mut Window<'w>) -> Result<bool, Error>,
) -> Result<Option<Damage>, Error> {
    let mut offset = 0;
    while offset < window.len() {
        let Some(chunk) = Chunk::read(window, offset)? else {
            let is_cut = offset == 0 || window.read(offset, SNIFFED_BYTES)?.starts_with(MAGIC);
            let what = format!("damaged or cut short: no chunk begins at byte {offset}");
            return Ok(Some(if is_cut { Damage::Text(what) } else { Damage::Foreign(offset) }));
        };
        if chunk.version < FIRST_VERSION {
            let what =
                "a recording of Oracle's JDK 7 or 8, whose format is not supported; open it in JDK Mission Control";
            return Ok(Some(Damage::Text(what.to_owned())));
        }
        if !visit(&chunk, window)? {
            break;
        }
        if chunk.is_cut {
            return Ok(Some(Damage::Text("cut short: its last chunk is not complete".to_owned())));
        }
        offset = chunk.end;
    }
    Ok(None)
}

/// Returns the names of the events that count, or `None` if all do.
fn select_events(document: &Document<'_>, window: &mut Window<'_>) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let choice = document.options.event.clone();
    if choice == EventChoice::All {
        return select_with_stacks(window);
    }
    // Which events of a group count depends on those that the recording has.
    let is_named = matches!(&choice, EventChoice::Named(wanted) if !is_group(wanted));
    let is_cpu =
        matches!(&choice, EventChoice::First) || matches!(&choice, EventChoice::Named(wanted) if is_cpu_group(wanted));
    let mut counts: FxHashMap<Vec<u8>, u64> = FxHashMap::default();
    for_each_chunk(window, |chunk, window| {
        let Some(schema) = chunk.read_schema(window)? else { return Ok(true) };
        let types = EventTypes::new(&schema, &[]);
        if is_named {
            counts.extend(types.list().iter().map(|class| (class.name.clone(), 0)));
            return Ok(true);
        }
        let mut offset = chunk.first_event();
        while let Some(event) = chunk.event_at(window, offset)? {
            if let Some(class) = types.find(event.kind).map(|index| &types.list()[index]) {
                if is_cpu && is_first_default(&class.name) {
                    counts = [(class.name.clone(), 1)].into_iter().collect();
                    return Ok(false);
                }
                match counts.get_mut(&class.name) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(class.name.clone(), 1)),
                }
            }
            offset = event.end();
        }
        Ok(true)
    })?;
    Ok(select_types(&choice, &counts))
}

/// Returns the names of the events of which any has a stack, or `None` if those are all. Many types of events can have a stack,
/// but rarely or never do.
fn select_with_stacks(window: &mut Window<'_>) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let mut has_stack: FxHashMap<Vec<u8>, bool> = FxHashMap::default();
    for_each_chunk(window, |chunk, window| {
        let Some(schema) = chunk.read_schema(window)? else { return Ok(true) };
        let types = EventTypes::new(&schema, &[]);
        let known = |class: &EventType| has_stack.get(&class.name).copied();
        let mut found: Vec<Option<bool>> = types.list().iter().map(known).collect();
        let mut offset = chunk.first_event();
        while let Some(event) = chunk.event_at(window, offset)? {
            if let Some(index) = types.find(event.kind).filter(|index| found[*index] != Some(true)) {
                let values = event.read_values(window)?;
                let values = types.list()[index].decode(&mut Cursor::new(values, chunk.has_varints));
                found[index] = Some(values.is_some_and(|values| values.stack != 0));
            }
            offset = event.end();
        }
        let found = types.list().iter().zip(found);
        has_stack.extend(found.filter_map(|(class, found)| Some((class.name.clone(), found?))));
        Ok(true)
    })?;
    if has_stack.values().all(|has_stack| *has_stack) {
        return Ok(None);
    }
    Ok(Some(has_stack.into_iter().filter(|(_, has_stack)| *has_stack).map(|(name, _)| name).collect()))
}

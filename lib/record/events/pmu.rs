//! Events that the kernel describes in its file systems: those of performance monitoring units (PMUs) in sysfs, and
//! tracepoints in tracefs.

use std::fs;
use std::io;
use std::path::Path;

use perf_event_open::event::dp::DynamicPmu;

use crate::Error;

/// The directory of all PMUs.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// The usual mount points of tracefs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Returns the event of a PMU that terms such as `event=0x3c,umask=1` describe. A term may also be the name of an event
/// that the PMU lists.
///
/// # Errors
/// [`Error::System`] if the machine has no such PMU, [`Error::Invalid`] if the PMU has no such term.
pub fn parse_event(devices: &Path, pmu: &str, terms: &str) -> Result<DynamicPmu, Error> {
    let directory = devices.join(pmu);
    let ty = fs::read_to_string(directory.join("type")).ok().filter(|_| !pmu.is_empty() && !pmu.contains('.'));
    let ty = ty.and_then(|ty| ty.trim().parse().ok());
    let Some(ty) = ty else {
        let known = list_names(devices);
        return Err(Error::System(format!("-e {pmu}/{terms}/: this machine has no PMU {pmu}; it has {known}")));
    };
    let mut event = DynamicPmu { ty, config: 0, config1: 0, config2: 0, config3: 0 };
    for term in terms.split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, ""));
        // The file of a named event contains its terms.
        let set = match fs::read_to_string(directory.join("events").join(name)) {
            _ if name.contains(['/', '.']) => None,
            Ok(inner) if value.is_empty() => {
                inner.trim().split(',').try_for_each(|term| set_term(&mut event, &directory, term))
            }
            _ => set_term(&mut event, &directory, term),
        };
        if set.is_none() {
            let (kind, folder) = if value.is_empty() { ("events", "events") } else { ("terms", "format") };
            let known = list_names(&directory.join(folder));
            let reason = format!("{pmu} does not accept {term}; its {kind} are {known}");
            return Err(Error::Invalid(format!("-e {pmu}/{terms}/: {reason}")));
        }
    }
    Ok(event)
}

/// Sets the bits of a term, which the PMU's `format` directory describes: `config:0-7,32`.
fn set_term(event: &mut DynamicPmu, directory: &Path, term: &str) -> Option<()> {
    let (name, value) = term.split_once('=').unwrap_or((term, "1"));
    let mut value = parse_number(value)?;
    let format = match name {
        "config" | "config1" | "config2" => format!("{name}:0-63"),
        _ => fs::read_to_string(directory.join("format").join(name)).ok()?,
    };
    let (word, bits) = format.trim().split_once(':')?;
    let word = match word {
        "config" => &mut event.config,
        "config1" => &mut event.config1,
        "config2" => &mut event.config2,
        "config3" => &mut event.config3,
        _ => return None,
    };
    for range in bits.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        let width = last.checked_sub(first).filter(|_| last < 64)? + 1;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        *word |= (value & mask) << first;
        value = if width == 64 { 0 } else { value >> width };
    }
    (value == 0).then_some(())
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the event type of a PMU (`perf_event_attr::type`) if the kernel has that PMU.
pub fn event_type(pmu: &str) -> Option<u32> {
    fs::read_to_string(Path::new(DEVICES).join(pmu).join("type")).ok()?.trim().parse().ok()
}

/// Lists the files of a directory, for a message.
fn list_names(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns the ID of a tracepoint.
///
/// # Errors
/// [`Error::Usage`] if no tracepoint has that name, [`Error::System`] if tracefs cannot be read.
pub fn tracepoint_id(subsystem: &str, event: &str) -> Result<u64, Error> {
    let id = read_tracepoint_file(subsystem, event, "id")?;
    id.trim().parse().map_err(|_| Error::System(format!("tracepoint {subsystem}:{event} has no ID")))
}

/// True if a tracepoint was made for a probe. The fields of probes begin with the address of the probed code.
///
/// # Errors
/// [`Error::Usage`] if no tracepoint has that name, [`Error::System`] if tracefs cannot be read.
pub fn is_probe(subsystem: &str, event: &str) -> Result<bool, Error> {
    Ok(read_tracepoint_file(subsystem, event, "format")?.contains(" __probe_"))
}

/// Reads one of the files that describe a tracepoint, such as `id` or `format`.
///
/// # Errors
/// [`Error::Usage`] if no tracepoint has that name, [`Error::System`] if tracefs cannot be read.
pub fn read_tracepoint_file(subsystem: &str, event: &str, file: &str) -> Result<String, Error> {
    let name = format!("{subsystem}:{event}");
    if [subsystem, event].iter().any(|part| part.is_empty() || part.contains(['/', '.'])) {
        return Err(Error::Usage(format!("-e {name}: no such event")));
    }
    let mut permission_denied = false;
    for events in TRACEFS.map(|mount| Path::new(mount).join("events")) {
        match fs::read_to_string(events.join(subsystem).join(event).join(file)) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => permission_denied = true,
            Err(_) => {}
        }
    }
    let is_mounted = TRACEFS.iter().any(|mount| Path::new(mount).join("events").exists());
    Err(match (permission_denied, is_mounted) {
        (true, _) => Error::System(format!("-e {name}: only root may look up tracepoints; use sudo")),
        (false, true) => Error::Usage(format!("-e {name}: this kernel has no such tracepoint")),
        (false, false) => Error::System(format!(
            "-e {name}: tracefs is not mounted; run: sudo mount -t tracefs tracefs /sys/kernel/tracing"
        )),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn encodes_terms_as_the_pmu_describes_them() {
        let devices = tempfile::tempdir().unwrap();
        let directory = devices.path().join("cpu");
        for (name, text) in [
            ("type", "4\n"),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15\n"),
            ("format/split", "config1:0-3,60\n"),
            ("format/any", "config:21\n"),
            ("events/cache-misses", "event=0x2e,umask=0x41\n"),
        ] {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (terms, configs) in [
            ("event=0x3c,umask=1", (0x13c, 0)),
            ("cache-misses,any", (0x20412e, 0)),
            ("split=17", (0, 1 << 60 | 1)),
            ("config=0xffffffffffffffff", (u64::MAX, 0)),
        ] {
            let event = super::parse_event(devices.path(), "cpu", terms).unwrap();
            assert_eq!((event.ty, (event.config, event.config1)), (4, configs), "{terms}");
        }
        for (pmu, terms, message) in [
            ("cpu", "event=0x100", "cpu does not accept event=0x100"),
            ("cpu", "evnt=1", "its terms are any, event, split, umask"),
            ("gpu", "event=1", "-e gpu/event=1/: this machine has no PMU gpu; it has cpu"),
            ("../devices/cpu", "event=1", "no PMU ../devices/cpu"),
        ] {
            let error = super::parse_event(devices.path(), pmu, terms).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}

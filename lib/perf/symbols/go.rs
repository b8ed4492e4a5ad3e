//! Frames of the functions of Go programs, by their function table. It has the source lines and the inlined calls of
//! stripped programs too.

use super::dwarf::format_source;
use super::frame::{NamedFrame, SymbolizeOptions};
use crate::perf::go::locate::TableLocation;
use crate::perf::go::table::{Function, FunctionTable};

/// Maximum number of calls that are inlined at an address.
const MAX_INLINED: usize = 64;

/// The functions of a Go program.
#[derive(Debug)]
pub struct GoFunctions<'a>(FunctionTable<'a>);

impl<'a> GoFunctions<'a> {
    /// Finds the functions in the content of an ELF file. `None` if it is not a Go program.
    pub fn load(bytes: &'a [u8]) -> Option<Self> {
        TableLocation::find(bytes)?.open(bytes).map(Self)
    }

    /// Returns the frames at an address, outermost first. `None` if it is not in a Go function.
    pub fn find_frames(&self, address: u64, options: &SymbolizeOptions) -> Option<Vec<NamedFrame>> {
        let function = self.0.find(address)?;
        let name = function.name().filter(|name| !name.is_empty())?;
        let source = |site: u64| if options.lines { find_source(&function, site) } else { None };
        let (mut frames, mut site) = (Vec::new(), address);
        while options.inline
            && frames.len() < MAX_INLINED
            && let Some(call) = function.inlined_call(site)
        {
            let (name, source) = (call.name.to_vec(), source(site));
            frames.push(NamedFrame { name, has_symbol: true, is_inlined: true, start: None, source, is_script: false });
            site = call.call_site;
        }
        // Without inlined calls, the line is that of the instruction, as debug information has it.
        frames.push(NamedFrame { source: source(site), ..NamedFrame::from_symbol(name.to_vec(), function.start) });
        frames.reverse();
        Some(frames)
    }
}

fn find_source(function: &Function<'_>, address: u64) -> Option<Vec<u8>> {
    let (file, line) = function.source(address)?;
    Some(format_source(&String::from_utf8_lossy(file), line))
}

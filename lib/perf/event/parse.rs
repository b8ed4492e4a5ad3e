//! Parses the kernel's records, by type.

use super::branches::Branches;
use super::callchain::Callchain;
use super::fields::Fields;
use super::layout::{Layout, branch_type, record_type, sample_type as bit};
use super::{Event, Inode, Mmap, Sample, Stamp, UserState};

const MISC_CPUMODE: u16 = 7;
const MISC_KERNEL: u16 = 1;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
const MISC_MMAP_DATA: u16 = 1 << 13;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;

/// Parses a record with its header. `None` if it is too short for its fields.
pub fn parse(record: &[u8], layout: Layout) -> Option<(Stamp, Event<'_>)> {
    let mut fields = Fields::new(record);
    let kind = fields.u32()?;
    let misc = fields.u16()?;
    let size = usize::from(fields.u16()?);
    let mut body = Fields::new(record.get(8..size)?);
    if kind == record_type::SAMPLE {
        return parse_sample(&mut body, layout, misc);
    }
    let stamp = parse_trailer(body.split_end(trailer_size(layout))?, layout)?;
    let event = match kind {
        record_type::MMAP | record_type::MMAP2 => Event::Mmap(parse_mmap(&mut body, kind, misc)?),
        record_type::LOST => {
            body.u64()?;
            Event::Lost(body.u64()?)
        }
        record_type::LOST_SAMPLES => Event::Lost(body.u64()?),
        record_type::COMM => {
            Event::Comm { pid: body.u32()?, tid: body.u32()?, exec: misc & MISC_COMM_EXEC != 0, comm: body.c_string() }
        }
        record_type::FORK => {
            let (pid, parent_pid, tid, parent_tid) = (body.u32()?, body.u32()?, body.u32()?, body.u32()?);
            Event::Fork { pid, tid, parent_pid, parent_tid }
        }
        record_type::EXIT => {
            let (pid, _, tid) = (body.u32()?, body.u32()?, body.u32()?);
            Event::Exit { pid, tid }
        }
        record_type::THROTTLE => Event::Throttle,
        record_type::SWITCH | record_type::SWITCH_CPU_WIDE => {
            Event::Switch { out: misc & MISC_SWITCH_OUT != 0, preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0 }
        }
        _ => Event::Other,
    };
    Some((stamp, event))
}

/// Returns the ID of the counter of a sample, in a ring where the layouts of samples differ, but all begin with the
/// fields of `layout` up to the ID. `None` for other records.
pub fn parse_counter_id(record: &[u8], layout: Layout) -> Option<u64> {
    let mut fields = Fields::new(record);
    if fields.u32()? != record_type::SAMPLE {
        return None;
    }
    let before = [bit::IP, bit::TID, bit::TIME, bit::ADDR].iter().filter(|bit| layout.has(**bit));
    fields.take(4 + 8 * before.count())?;
    fields.u64()
}

fn parse_sample<'a>(body: &mut Fields<'a>, layout: Layout, misc: u16) -> Option<(Stamp, Event<'a>)> {
    let mut stamp = Stamp::default();
    let mut sample = Sample { period: 1, in_kernel: misc & MISC_CPUMODE == MISC_KERNEL, ..Sample::default() };
    if layout.has(bit::IDENTIFIER) {
        stamp.id = body.u64()?;
    }
    if layout.has(bit::IP) {
        sample.ip = body.u64()?;
    }
    if layout.has(bit::TID) {
        (stamp.pid, stamp.tid) = (body.u32()?, body.u32()?);
    }
    if layout.has(bit::TIME) {
        stamp.time = body.u64()?;
    }
    if layout.has(bit::ADDR) {
        body.u64()?;
    }
    if layout.has(bit::ID) {
        stamp.id = body.u64()?;
    }
    if layout.has(bit::STREAM_ID) {
        body.u64()?;
    }
    if layout.has(bit::CPU) {
        (stamp.cpu, _) = (body.u32()?, body.u32()?);
    }
    if layout.has(bit::PERIOD) {
        sample.period = body.u64()?;
    }
    if layout.has(bit::READ) {
        skip_values(body, layout.read_format)?;
    }
    if layout.has(bit::CALLCHAIN) {
        let entries = usize::try_from(body.u64()?).ok()?;
        sample.callchain = Callchain::new(body.take(entries.checked_mul(8)?)?);
    }
    if layout.has(bit::RAW) {
        let size = body.u32()? as usize;
        sample.raw = body.take(size)?;
    }
    if layout.has(bit::BRANCH_STACK) {
        sample.branches = parse_branches(body, layout.branch_sample_type)?;
    }
    if layout.has(bit::REGS_USER) {
        sample.user = parse_user_state(body, layout.user_registers, layout.has(bit::STACK_USER))?;
    }
    Some((stamp, Event::Sample(sample)))
}

/// Skips the values of the counters, whose format is that of `read(2)`.
fn skip_values(body: &mut Fields<'_>, format: u64) -> Option<()> {
    // PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING precede the values; each value may have _ID and _LOST.
    let times = (format & 0b11).count_ones() as usize;
    let words = 1 + (format & 0b1_0100).count_ones() as usize;
    let is_group = format & 0b1000 != 0;
    let values = if is_group { usize::try_from(body.u64()?).ok()? } else { 1 };
    body.take(values.checked_mul(words)?.checked_add(times)?.checked_mul(8)?)?;
    Some(())
}

/// Parses the branch records: three words each, or four with counters, after a word with the index if that was
/// requested.
///
/// Only records of calls that have not returned are returned.
fn parse_branches<'a>(body: &mut Fields<'a>, kind: u64) -> Option<Branches<'a>> {
    let count = usize::try_from(body.u64()?).ok()?;
    if kind & branch_type::HW_INDEX != 0 {
        body.u64()?;
    }
    let words = if kind & branch_type::COUNTERS != 0 { 4 } else { 3 };
    let bytes = body.take(count.checked_mul(words)?.checked_mul(8)?)?;
    let is_call_stack = kind & branch_type::CALL_STACK != 0;
    Some(if is_call_stack { Branches::new(bytes, words) } else { Branches::default() })
}

/// The value of `PERF_SAMPLE_REGS_ABI_64`.
const ABI_64: u64 = 2;

/// Parses the user registers and the copy of the user stack. `Some(None)` for kernel threads, which have neither.
///
/// The ABI comes before the registers. The size of the copy comes before it, and the number of bytes used after it.
fn parse_user_state<'a>(body: &mut Fields<'a>, mask: u64, has_stack: bool) -> Option<Option<UserState<'a>>> {
    let abi = body.u64()?;
    let registers = if abi == 0 { &[] } else { body.take(mask.count_ones() as usize * 8)? };
    let size = if has_stack { usize::try_from(body.u64()?).ok()? } else { 0 };
    let mut stack = None;
    if size > 0 {
        let reserved = body.take(size)?;
        stack = Some(reserved.get(..usize::try_from(body.u64()?).ok()?)?);
    }
    let registers = if abi == ABI_64 { registers } else { &[] };
    let is_copy_short = stack.is_some_and(|stack| stack.len() < size);
    Some((abi != 0).then_some(UserState { mask, registers, stack, is_copy_short, record: None, scripts: None }))
}

fn parse_mmap<'a>(body: &mut Fields<'a>, kind: u32, misc: u16) -> Option<Mmap<'a>> {
    let (pid, _) = (body.u32()?, body.u32()?);
    let (start, length, offset) = (body.u64()?, body.u64()?, body.u64()?);
    let (mut inode, mut build_id) = (None, None);
    let (mut executable, mut writable) = (misc & MISC_MMAP_DATA == 0, false);
    if kind == record_type::MMAP2 {
        let mut file = *body;
        let identity = body.take(24)?;
        if misc & MISC_MMAP_BUILD_ID == 0 {
            let device = u64::from(file.u32()?) << 32 | u64::from(file.u32()?);
            let found = Inode { device, number: file.u64()?, generation: file.u64()? };
            inode = Some(found).filter(|inode| inode.number != 0);
        } else {
            build_id = identity[4..].get(..usize::from(identity[0])).filter(|id| !id.is_empty());
        }
        let protection = body.u32()?;
        (executable, writable) = (protection & PROT_EXEC != 0, protection & PROT_WRITE != 0);
        body.u32()?;
    }
    Some(Mmap { pid, start, length, offset, inode, build_id, executable, writable, path: body.c_string() })
}

/// The fields at the end of every record but samples, in this order.
const TRAILER: [u64; 6] = [bit::TID, bit::TIME, bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER];

fn trailer_size(layout: Layout) -> usize {
    if !layout.sample_id_all {
        return 0;
    }
    TRAILER.iter().filter(|bit| layout.has(**bit)).count() * 8
}

fn parse_trailer(mut fields: Fields<'_>, layout: Layout) -> Option<Stamp> {
    let mut stamp = Stamp::default();
    if !layout.sample_id_all {
        return Some(stamp);
    }
    for bit in TRAILER.into_iter().filter(|bit| layout.has(*bit)) {
        let value = fields.u64()?;
        match bit {
            bit::TID => (stamp.pid, stamp.tid) = (value as u32, (value >> 32) as u32),
            bit::TIME => stamp.time = value,
            bit::CPU => stamp.cpu = value as u32,
            bit::STREAM_ID => {}
            _ => stamp.id = value,
        }
    }
    Some(stamp)
}

#[cfg(test)]
mod tests {
    use super::{Event, Layout, bit, branch_type, parse};
    use crate::perf::event::Address;

    const LAYOUT: Layout =
        Layout::new(bit::IP | bit::TID | bit::TIME | bit::ID | bit::CPU | bit::PERIOD | bit::CALLCHAIN, 0);

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes());
        bytes.extend(u16::try_from(body.len() + 8).unwrap().to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn reads_a_sample_with_both_contexts() {
        let chain = [6, -128i64 as u64, 0xffff_0001, 0xffff_0002, -512i64 as u64, 0x4000, 0x4100];
        let body = words(&[&[0x4000, (8 << 32) | 7, 99, 5, 1, 1000][..], &chain].concat());
        let bytes = record(9, 1, &body);
        let (stamp, event) = parse(&bytes, LAYOUT).unwrap();
        assert_eq!((stamp.pid, stamp.tid, stamp.time, stamp.id, stamp.cpu), (7, 8, 99, 5, 1));
        let Event::Sample(sample) = event else { panic!("{event:?}") };
        assert_eq!((sample.period, sample.in_kernel), (1000, true));
        let addresses: Vec<Address> = sample.callchain.addresses().collect();
        assert_eq!(
            addresses.iter().map(|a| a.lookup()).collect::<Vec<_>>(),
            [0xffff_0001, 0xffff_0001, 0x4000, 0x40ff]
        );
        assert_eq!(addresses.iter().map(|a| a.in_kernel).collect::<Vec<_>>(), [true, true, false, false]);
    }

    #[test]
    fn reads_a_comm_and_the_stamp_after_it() {
        let mut body = words(&[(9 << 32) | 9]);
        body.extend(b"worker 1\0\0\0\0\0\0\0\0");
        body.extend(words(&[(9 << 32) | 9, 1234, 5, 3]));
        let bytes = record(3, 1 << 13, &body);
        let (stamp, event) = parse(&bytes, LAYOUT).unwrap();
        assert_eq!((stamp.time, stamp.cpu), (1234, 3));
        assert!(matches!(event, Event::Comm { pid: 9, tid: 9, exec: true, comm: b"worker 1" }), "{event:?}");
    }

    #[test]
    fn reads_the_fields_of_a_tracepoint() {
        let layout = Layout::new(bit::IP | bit::RAW, 0);
        let mut body = words(&[0x4000]);
        body.extend(4u32.to_le_bytes());
        body.extend(b"four");
        let bytes = record(9, 1, &body);
        let Some((_, Event::Sample(sample))) = parse(&bytes, layout) else { panic!("no sample") };
        assert_eq!(sample.raw, b"four");
        assert!(parse(&record(9, 1, &body[..14]), layout).is_none());
    }

    #[test]
    fn reads_switches_of_threads_and_of_cpus() {
        let stamp = [(9 << 32) | 7, 1234, 5, 3];
        for (kind, body) in [(14, words(&stamp)), (15, words(&[&[1][..], &stamp].concat()))] {
            for (misc, expected) in [(0, (false, false)), (1 << 13, (true, false)), (3 << 13, (true, true))] {
                let bytes = record(kind, misc, &body);
                let (stamp, event) = parse(&bytes, LAYOUT).unwrap();
                assert_eq!((stamp.pid, stamp.tid, stamp.time), (7, 9, 1234));
                let Event::Switch { out, preempted } = event else { panic!("{event:?}") };
                assert_eq!((out, preempted), expected);
            }
        }
    }

    #[test]
    fn reads_registers_and_the_copied_part_of_the_stack() {
        let layout = Layout::new(bit::IP | bit::REGS_USER | bit::STACK_USER, 0b1100_0000);
        let body = words(&[0x4000, 2, 0x10, 0x20, 16, 0xaa, 0xbb, 8]);
        let bytes = record(9, 2, &body);
        let Some((_, Event::Sample(sample))) = parse(&bytes, layout) else { panic!("no sample") };
        let user = sample.user.unwrap();
        assert_eq!((user.registers, user.stack), (&words(&[0x10, 0x20])[..], Some(&words(&[0xaa])[..])));
        assert!(user.is_copy_short);
        let bytes = record(9, 2, &words(&[0x4000, 0, 0]));
        let Some((_, Event::Sample(sample))) = parse(&bytes, layout) else { panic!("no sample") };
        assert!(sample.user.is_none());
    }

    #[test]
    fn skips_fields_that_are_not_needed() {
        let sample_type = bit::IP | bit::READ | bit::CALLCHAIN | bit::RAW | bit::BRANCH_STACK;
        // A group of two counters, with IDs and the time enabled; two branch records after their index.
        let layout =
            Layout { read_format: 0b1101, branch_sample_type: branch_type::HW_INDEX, ..Layout::new(sample_type, 0) };
        let read = [2, 500, 11, 1, 22, 2];
        let chain = [2, -512i64 as u64, 0x4000];
        let raw_of_4_bytes = (7 << 32) | 4;
        let branches = [2, 9, 1, 2, 3, 4, 5, 6];
        let body = words(&[&[0x4000][..], &read, &chain, &[raw_of_4_bytes], &branches].concat());
        let bytes = record(9, 2, &body);
        let Some((_, Event::Sample(sample))) = parse(&bytes, layout) else { panic!("no sample") };
        assert_eq!(sample.callchain.addresses().count(), 1);
        assert!(parse(&record(9, 2, &body[..body.len() - 8]), layout).is_none());
    }

    #[test]
    fn reads_branch_records_as_calls() {
        let branch_sample_type = branch_type::USER | branch_type::CALL_STACK | branch_type::HW_INDEX;
        let layout = Layout { branch_sample_type, ..Layout::new(bit::IP | bit::CALLCHAIN | bit::BRANCH_STACK, 0) };
        let chain = [4, -128i64 as u64, 0xffff_0001, -512i64 as u64, 0x4444];
        let body = words(&[&[0xffff_0001][..], &chain, &[2, 0, 0x3000, 0x4000, 0, 0x2000, 0x2800, 0]].concat());
        let bytes = record(9, 1, &body);
        let Some((_, Event::Sample(sample))) = parse(&bytes, layout) else { panic!("no sample") };
        let addresses: Vec<u64> = sample.addresses().map(|address| address.lookup()).collect();
        assert_eq!(addresses, [0xffff_0001, 0x4000, 0x3000, 0x2000]);
        // Branch records of another type are not a stack.
        let layout = Layout { branch_sample_type: branch_sample_type & !branch_type::CALL_STACK, ..layout };
        let Some((_, Event::Sample(sample))) = parse(&bytes, layout) else { panic!("no sample") };
        assert_eq!(sample.addresses().map(|address| address.lookup()).collect::<Vec<_>>(), [0xffff_0001, 0x4444]);
    }

    #[test]
    fn rejects_a_record_shorter_than_its_fields() {
        for length in 0..64 {
            let body = words(&[0x4000, 1, 2, 3, 4, 5, u64::MAX / 8]);
            let bytes = record(9, 0, &body);
            assert!(parse(&bytes[..length.min(bytes.len())], LAYOUT).is_none());
        }
    }
}

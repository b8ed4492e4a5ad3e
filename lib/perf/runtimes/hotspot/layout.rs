//! The layout of HotSpot's structures, from its own description.

use super::vm_structs::VmStructs;
use crate::perf::runtimes::interpreter::{FIELDS, Layout, Memory};
use crate::perf::runtimes::thread_anchor::ThreadAnchor;

/// The number of HotSpot in the BPF program.
const KIND: u32 = 4;

/// The layout of one build of HotSpot.
#[derive(Debug)]
pub(super) struct HotSpotLayout {
    /// What the BPF program needs.
    pub(super) layout: Layout,
    pub(super) methods: MethodPlaces,
    pub(super) code: CodePlaces,
    pub(super) debug: DebugPlaces,
    /// The address in the file (SVMA) of the option by which the compilers leave rows of all instructions.
    pub(super) all_rows_option: Option<u64>,
}

/// The places of what names a method.
#[derive(Debug)]
pub(super) struct MethodPlaces {
    pub(super) const_method: u64,
    pub(super) pool: u64,
    pub(super) name_index: u64,
    /// The place of the flags, of which the first says that there is a table of lines.
    pub(super) flags: u64,
    pub(super) code_size: u64,
    /// The size of a method's constant part: its code follows.
    pub(super) const_method_size: u64,
    pub(super) pool_size: u64,
    pub(super) pool_holder: u64,
    pub(super) klass_name: u64,
    pub(super) symbol_length: u64,
    pub(super) symbol_body: u64,
}

/// The places in a code blob.
#[derive(Debug)]
pub(super) struct CodePlaces {
    pub(super) name: u64,
    pub(super) method: u64,
    pub(super) compile_id: u64,
}

/// The places of what tells which methods were inlined. A place is of an offset of 4 bytes from `base`.
#[derive(Debug)]
pub(super) struct DebugPlaces {
    /// The place of the pointer to the tables in a blob; `None` if they are in the blob itself.
    pub(super) base: Option<u64>,
    /// The code.
    pub(super) code: Place,
    /// The offsets of the table of instructions, and of its end.
    pub(super) pcs: u64,
    pub(super) pcs_end: u64,
    /// The pointer to the scopes, or their offset.
    pub(super) scopes: Place,
    /// The pointer to the table that the offset of the methods refers to; `None` if it is the blob.
    pub(super) metadata_base: Option<u64>,
    pub(super) metadata: u64,
    /// What is added to each byte of a compressed number: 1 from JDK 20 on.
    pub(super) excluded: u8,
}

/// The place of something that belongs to a blob.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// The place of a pointer to it in the blob.
    Pointer(u64),
    /// The place of its offset in the blob.
    Offset(u64),
}

impl HotSpotLayout {
    /// Makes the layout from HotSpot's description of itself. `None` if a structure is not described.
    pub(super) fn find(vm: &VmStructs, bias: u64, memory: Memory) -> Option<Self> {
        // Before the library has run, offsets are 0.
        let klass_name = vm.field("Klass", "_name").filter(|offset| *offset > 0)?;
        let methods = MethodPlaces {
            const_method: vm.field("Method", "_constMethod")?,
            pool: vm.field("ConstMethod", "_constants")?,
            name_index: vm.field("ConstMethod", "_name_index")?,
            flags: vm.place(&[("ConstMethod", "_flags._flags"), ("ConstMethod", "_flags")])?,
            code_size: vm.field("ConstMethod", "_code_size")?,
            const_method_size: vm.size("ConstMethod")?,
            pool_size: vm.size("ConstantPool")?,
            pool_holder: vm.field("ConstantPool", "_pool_holder")?,
            klass_name,
            symbol_length: vm.field("Symbol", "_length")?,
            symbol_body: vm.field("Symbol", "_body")?,
        };
        let code = CodePlaces {
            name: vm.field("CodeBlob", "_name")?,
            method: vm.place(&[("CompiledMethod", "_method"), ("nmethod", "_method")])?,
            compile_id: vm.field("nmethod", "_compile_id")?,
        };
        let layout = bpf_layout(vm, bias, &methods, &code)?;
        let all_rows_option = vm.find_option(b"DebugNonSafepoints", memory).map(|option| option.wrapping_sub(bias));
        Some(Self { layout, debug: debug_places(vm, memory)?, all_rows_option, methods, code })
    }
}

/// Returns the fields in the order of the BPF program (`record/bpf/hotspot.bpf.h`).
fn bpf_layout(vm: &VmStructs, bias: u64, methods: &MethodPlaces, code: &CodePlaces) -> Option<Layout> {
    let one_heap = vm.field("CodeCache", "_heap");
    let heaps = one_heap.or_else(|| vm.field("CodeCache", "_heaps"))?;
    let code_offset = vm.field("CodeBlob", "_code_offset");
    let handler = [
        ("nmethod", "_deopt_handler_offset"),
        ("CompiledMethod", "_deopt_handler_begin"),
        ("nmethod", "_deoptimize_offset"),
    ];
    let length = [("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len")];
    let numbers = [
        one_heap.is_some().into(),
        vm.place(&length).or(one_heap)?,
        vm.field("GrowableArray<int>", "_data").or(one_heap)?,
        vm.field("CodeHeap", "_memory")? + vm.field("VirtualSpace", "_low")?,
        vm.field("CodeHeap", "_memory")? + vm.field("VirtualSpace", "_high_boundary")?,
        vm.field("CodeHeap", "_segmap")? + vm.field("VirtualSpace", "_low")?,
        vm.field("CodeHeap", "_log2_segment_size")?,
        vm.size("HeapBlock")?,
        code.name,
        vm.field("CodeBlob", "_frame_size")?,
        vm.field("CodeBlob", "_frame_complete_offset")?,
        u64::from(vm.is_short("CodeBlob", "_frame_size"))
            | u64::from(vm.is_short("CodeBlob", "_frame_complete_offset")) << 1,
        code_offset.or_else(|| vm.field("CodeBlob", "_code_begin"))?,
        code_offset.is_some().into(),
        code.method,
        code.compile_id,
        vm.field("nmethod", "_orig_pc_offset")?,
        vm.place(&handler)?,
        vm.field("StubRoutines", "_call_stub_return_address")?.wrapping_sub(heaps),
        methods.const_method,
        methods.const_method_size,
        methods.code_size,
        methods.pool,
        methods.name_index,
        methods.pool_size,
        methods.pool_holder,
        methods.klass_name,
        methods.symbol_length,
        methods.symbol_body,
        // Up to JDK 8 an interpreted frame has no slot for the class.
        if one_heap.is_some() { 7 } else { 8 },
    ];
    let mut fields = [0; FIELDS];
    fields.iter_mut().zip(numbers).for_each(|(field, number)| *field = number as u32);
    Some(Layout { kind: KIND, anchor: ThreadAnchor::Library(heaps.wrapping_sub(bias)), fields })
}

fn debug_places(vm: &VmStructs, memory: Memory) -> Option<DebugPlaces> {
    let base = vm.field("nmethod", "_immutable_data");
    let scopes = vm.field("CompiledMethod", "_scopes_data_begin").map(Place::Pointer);
    let pcs_end = if base.is_some() {
        vm.field("nmethod", "_scopes_data_offset")
    } else {
        vm.field("nmethod", "_dependencies_offset")
    };
    let metadata_base = vm.field("CodeBlob", "_mutable_data");
    let metadata = if metadata_base.is_some() {
        vm.field("CodeBlob", "_relocation_size")
    } else {
        vm.field("nmethod", "_metadata_offset")
    };
    let code = vm.field("CodeBlob", "_code_offset").map(Place::Offset);
    Some(DebugPlaces {
        base,
        code: code.or_else(|| vm.field("CodeBlob", "_code_begin").map(Place::Pointer))?,
        pcs: vm.field("nmethod", "_scopes_pcs_offset")?,
        pcs_end: pcs_end?,
        scopes: scopes.or_else(|| vm.field("nmethod", "_scopes_data_offset").map(Place::Offset))?,
        metadata_base,
        metadata: metadata?,
        excluded: u8::from(find_version(vm, memory)? >= 20),
    })
}

/// Returns the version of the JDK. `None` before the virtual machine has started.
fn find_version(vm: &VmStructs, memory: Memory) -> Option<u8> {
    let version = [("JDK_Version", "_current"), ("Abstract_VM_Version", "_vm_major_version")];
    memory.bytes(vm.place(&version)?, 1)?.first().copied().filter(|version| *version > 0)
}

//! Call trees whose nodes have an inclusive weight and a list of callees.

use super::value::Value;
use crate::Error;
use crate::collapse::document::Document;
use crate::collapse::sink::Sink;
use crate::collapse::stack::CallTree;
use crate::profile::Weight;

/// A node as a format reads it.
pub(super) struct Node {
    /// The frame's name.
    pub(super) name: Vec<u8>,
    /// The inclusive weight, or `None` if it is missing or invalid.
    pub(super) weight: Option<Weight>,
    /// True for a node that is no frame: its callees take its place.
    pub(super) is_hidden: bool,
}

/// Adds a tree, whose nodes have their callees under `key`.
pub(super) fn fold_tree<'t>(
    root: Value<'t>,
    key: &[u8],
    parse: impl Fn(Value<'t>, usize) -> Node,
    document: &mut Document<'_>,
    sink: &mut Sink,
) -> Result<(), Error> {
    let (mut tree, mut waiting) = (CallTree::default(), vec![(root, 0)]);
    let (mut invalid, mut too_deep) = (0, 0);
    while let Some((value, depth)) = waiting.pop() {
        let node = parse(value, depth);
        let below = if node.is_hidden { depth } else { depth + 1 };
        let is_entered = match node.weight {
            _ if node.is_hidden => true,
            Some(weight) => tree.enter_rounded(depth, &node.name, weight, sink)?,
            None => {
                invalid += 1;
                continue;
            }
        };
        too_deep += u64::from(!is_entered);
        if is_entered {
            let first = waiting.len();
            waiting.extend(value.get_items(key).map(|callee| (callee, below)));
            waiting[first..].reverse();
        }
    }
    tree.leave(0, sink)?;
    document.report_problems(invalid, "node", "left out: its weight is missing or invalid")?;
    document.report_problems(too_deep, "node", "left out: inside too many others")
}

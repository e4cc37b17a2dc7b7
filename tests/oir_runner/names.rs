//! The names of a function's entities in blocks of expected output.

use ir::text::FunctionText;
use ir::{Function, Module, Point, Value};
use std::collections::BTreeMap;

/// The names of the blocks, values and instructions of one function.
pub(crate) struct Names {
    names: BTreeMap<String, String>,
    points: BTreeMap<Point, String>,
}

impl Names {
    pub(crate) fn new(module: &Module, function: &Function) -> Names {
        let text = FunctionText::new(module, function);
        let (mut names, mut points) = (BTreeMap::new(), BTreeMap::new());
        for block in function.blocks() {
            names.insert(block.to_string(), text.block(block));
            for param in function.block_params(block) {
                names.insert(param.to_string(), text.value(*param));
            }
            for (position, inst) in function.block_insts(block).enumerate() {
                let results = &function.inst(inst).results;
                names.extend(results.iter().map(|value| (value.to_string(), text.value(*value))));
                let place = format!("{}:{position}", text.block(block));
                points.insert(Point::before(inst), place.clone());
                names.insert(
                    inst.to_string(),
                    results.first().map_or(place, |value| text.value(*value)),
                );
            }
        }
        Names { names, points }
    }

    /// The name of an entity, by the display of its id. An instruction without a result has block
    /// and position as its name.
    pub(crate) fn name(&self, id: &str) -> Option<String> {
        self.names.get(id).cloned()
    }

    /// The name of a value the function has.
    pub(crate) fn value(&self, value: Value) -> &str {
        &self.names[&value.to_string()]
    }

    /// The block and position of a point.
    pub(crate) fn point(&self, point: Point) -> &str {
        &self.points[&point]
    }
}

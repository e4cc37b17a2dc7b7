//! Random programs whose objects are needed in part.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use verify::prng::Prng;

/// What a name of a state is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Number,
    /// A form of the object with this number and tag.
    Object(usize, u64),
}

/// A frame state: where it stands, and what it names.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// The block that begins with the exit.
    pub(super) label: String,
    /// The result of the call that the state stands behind, in place of an exit.
    pub(super) behind: Option<String>,
    pub(super) named: Vec<(String, Kind)>,
}

/// A program, and its states by function.
pub(super) struct RandomObjects {
    pub(super) text: String,
    pub(super) states: Vec<(&'static str, Vec<Recorded>)>,
}

impl RandomObjects {
    /// The program of a seed.
    pub(super) fn new(seed: u64) -> RandomObjects {
        let mut text = String::from(
            "memory @heap 1\n\
             import func @new \"env\" \"new\" (i32, i64) -> ref effect(allocates)\n\
             import func @show \"env\" \"show\" (i64) -> ()\n\
             import func @give \"env\" \"give\" (ref) -> ()\n",
        );
        let prng = Prng::new(seed);
        let mut part = ObjectWriter::new(prng.fork(1), false);
        part.function("func @part(%s: i64, %x: f64) -> i64 {");
        let mut main = ObjectWriter::new(prng.fork(2), true);
        main.function("func @main(%n: i32, %s: i64, %x: f64) -> i64 {");
        text.push_str(&part.text);
        text.push_str(&main.text);
        RandomObjects { text, states: vec![("part", part.states), ("main", main.states)] }
    }
}

/// What a field holds on all paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Bits,
    Float,
}

#[derive(Clone)]
struct ScopedObject {
    number: usize,
    tag: u64,
    /// By offset. The first field is an i32, and is written at once.
    fields: BTreeMap<u32, Held>,
}

/// What code at a place may name.
#[derive(Clone, Default)]
struct ObjectScope {
    ints: Vec<String>,
    floats: Vec<String>,
    objects: Vec<ScopedObject>,
}

/// Writes the code of a function.
struct ObjectWriter {
    prng: Prng,
    text: String,
    /// The blocks of exits.
    exits: String,
    next: usize,
    states: Vec<Recorded>,
    /// Whether the function has a loop and calls `@part`.
    is_main: bool,
}

const TAGS: [u64; 3] = [0xfffa << 48, 0xfffb << 48, 5 << 48];
const OFFSETS: [u32; 3] = [8, 16, 24];

impl ObjectWriter {
    fn new(prng: Prng, is_main: bool) -> ObjectWriter {
        let (text, exits, states) = (String::new(), String::new(), Vec::new());
        ObjectWriter { prng, text, exits, next: 0, states, is_main }
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "  {line}").expect("a string takes all");
    }

    fn label(&mut self, label: &str) {
        writeln!(self.text, "{label}:").expect("a string takes all");
    }

    /// Writes `%NAMEn = CODE`, and returns the name.
    fn define(&mut self, name: &str, code: &str) -> String {
        self.next += 1;
        let name = format!("{name}{}", self.next);
        self.line(&format!("%{name} = {code}"));
        name
    }

    fn function(&mut self, start: &str) {
        self.text.push_str(&format!("{start}\nentry:\n"));
        let mut scope = ObjectScope {
            ints: vec!["s".to_owned()],
            floats: vec!["x".to_owned()],
            ..ObjectScope::default()
        };
        let before = if self.is_main { 4 } else { 10 };
        self.statements(&mut scope, before, 1);
        if self.is_main {
            let (int, float) = (self.int(&scope), self.float(&scope));
            self.line("%zero = const.i32 0");
            self.line("%one = const.i32 1");
            self.line(&format!("jump head(%zero, %{int}, %{float})"));
            self.label("head(%i: i32, %acc: i64, %d: f64)");
            scope.ints.push("acc".to_owned());
            scope.floats.push("d".to_owned());
            self.statements(&mut scope, 12, 2);
            let (int, float) = (self.int(&scope), self.float(&scope));
            self.line("%more = add.i32 %i, %one");
            self.line("%on = slt.i32 %more, %n");
            self.line(&format!("br_if %on, head(%more, %{int}, %{float}), end"));
            self.label("end");
        }
        let int = self.int(&scope);
        self.line(&format!("return %{int}"));
        let exits = std::mem::take(&mut self.exits);
        self.text.push_str(&exits);
        self.text.push_str("}\n");
    }

    fn int(&mut self, scope: &ObjectScope) -> String {
        scope.ints[self.prng.index(scope.ints.len())].clone()
    }

    fn float(&mut self, scope: &ObjectScope) -> String {
        scope.floats[self.prng.index(scope.floats.len())].clone()
    }

    fn statements(&mut self, scope: &mut ObjectScope, count: usize, depth: u32) {
        for _ in 0..count {
            match self.prng.below(18) {
                0..=2 => self.object(scope),
                3..=5 => self.store(scope),
                6..=8 => self.load(scope),
                9 => self.exit_by_tag(scope),
                10 | 11 => self.exit_by_number(scope),
                12 | 13 => self.compute(scope),
                14 => self.show(scope),
                15 if self.prng.chance(30) => self.escape(scope),
                16 if depth > 0 => self.diamond(scope, depth),
                17 if self.is_main => self.call(scope),
                _ => self.load(scope),
            }
        }
    }

    fn object(&mut self, scope: &mut ObjectScope) {
        let tag = self.prng.pick(&TAGS);
        let size = self.define("size", "const.i32 32");
        let word = self.define("tag", &format!("const.i64 {tag:#x}"));
        self.next += 1;
        let number = self.next;
        self.line(&format!("%o{number} = call @new(%{size}, %{word})"));
        self.line(&format!("%w{number} = ref_bits %o{number}"));
        self.line(&format!("%at{number} = wrap.i32 %w{number}"));
        let shape = self.prng.below(9);
        let shape = self.define("shape", &format!("const.i32 {shape}"));
        self.line(&format!("store.i32 @heap[%at{number}], %{shape}"));
        scope.objects.push(ScopedObject { number, tag, fields: BTreeMap::new() });
        for offset in OFFSETS {
            if self.prng.chance(70) {
                let index = scope.objects.len() - 1;
                self.store_at(scope, index, offset);
            }
        }
    }

    fn store(&mut self, scope: &mut ObjectScope) {
        if !scope.objects.is_empty() {
            let index = self.prng.index(scope.objects.len());
            let offset = self.prng.pick(&OFFSETS);
            self.store_at(scope, index, offset);
        }
    }

    fn store_at(&mut self, scope: &mut ObjectScope, index: usize, offset: u32) {
        let (stored, held) = match self.prng.below(4) {
            0 => {
                let bits = self.prng.below(1000);
                (self.define("k", &format!("const.i64 {bits}")), Held::Bits)
            }
            1 => (self.int(scope), Held::Bits),
            _ => {
                let float = self.float(scope);
                (self.define("b", &format!("bitcast.i64 %{float}")), Held::Float)
            }
        };
        let object = &mut scope.objects[index];
        object.fields.insert(offset, held);
        let line = format!("store.i64 @heap[%at{} + {offset}], %{stored}", object.number);
        self.line(&line);
    }

    fn load(&mut self, scope: &mut ObjectScope) {
        if scope.objects.is_empty() {
            return;
        }
        let object = scope.objects[self.prng.index(scope.objects.len())].clone();
        if self.prng.chance(10) {
            let shape = self.define("l", &format!("load.i32 @heap[%at{}]", object.number));
            scope.ints.push(self.define("e", &format!("uextend.i64 %{shape}")));
        }
        let fields: Vec<(u32, Held)> = object.fields.into_iter().collect();
        if fields.is_empty() {
            return;
        }
        let (offset, held) = self.prng.pick(&fields);
        let loaded = self.define("l", &format!("load.i64 @heap[%at{} + {offset}]", object.number));
        match held {
            Held::Bits => scope.ints.push(loaded),
            Held::Float => scope.floats.push(self.define("f", &format!("bitcast.f64 %{loaded}"))),
        }
    }

    fn compute(&mut self, scope: &mut ObjectScope) {
        let [a, b] = [self.int(scope), self.int(scope)];
        let op = self.prng.pick(&["add", "xor", "mul"]);
        scope.ints.push(self.define("sum", &format!("{op}.i64 %{a}, %{b}")));
        let [a, b] = [self.float(scope), self.float(scope)];
        scope.floats.push(self.define("g", &format!("fadd.f64 %{a}, %{b}")));
    }

    fn show(&mut self, scope: &ObjectScope) {
        let int = self.int(scope);
        self.line(&format!("call @show(%{int})"));
    }

    /// Hands an object to the host, which writes into it.
    fn escape(&mut self, scope: &mut ObjectScope) {
        if scope.objects.is_empty() {
            return;
        }
        let index = self.prng.index(scope.objects.len());
        scope.objects[index].fields.insert(24, Held::Bits);
        let number = scope.objects[index].number;
        self.line(&format!("call @give(%o{number})"));
    }

    fn call(&mut self, scope: &mut ObjectScope) {
        let (int, float) = (self.int(scope), self.float(scope));
        let named = self.named(scope);
        let result = self.define("r", &format!("call @part(%{int}, %{float})"));
        let (label, behind) = (String::new(), Some(result.clone()));
        self.states.push(Recorded { label, behind, named });
        scope.ints.push(result);
        self.show(scope);
    }

    /// Leaves if the upper bits of a word differ from the tag.
    fn exit_by_tag(&mut self, scope: &mut ObjectScope) {
        if scope.objects.is_empty() {
            return;
        }
        let object = scope.objects[self.prng.index(scope.objects.len())].clone();
        let (number, tag) = (object.number, object.tag);
        if self.prng.chance(50) {
            let by = self.define("by", "const.i64 48");
            let high = self.define("high", &format!("ushr.i64 %w{number}, %{by}"));
            let wanted = self.define("wanted", &format!("const.i64 {:#x}", tag >> 48));
            let is = self.define("is", &format!("ne.i64 %{high}, %{wanted}"));
            self.exit(scope, &is);
        } else {
            let thrown = self.define("thrown", &format!("const.i64 {:#x}", 0xfff1_u64 << 48 | 2));
            let is = self.define("is", &format!("eq.i64 %w{number}, %{thrown}"));
            self.exit(scope, &is);
        }
    }

    fn condition(&mut self, scope: &ObjectScope) -> String {
        let int = self.int(scope);
        let by = self.prng.below(8);
        let by = self.define("c", &format!("const.i64 {by}"));
        let mask = self.define("c", "const.i64 7");
        let low = self.define("c", &format!("and.i64 %{int}, %{mask}"));
        self.define("c", &format!("eq.i64 %{low}, %{by}"))
    }

    fn exit_by_number(&mut self, scope: &ObjectScope) {
        let condition = self.condition(scope);
        self.exit(scope, &condition);
    }

    fn exit(&mut self, scope: &ObjectScope, condition: &str) {
        self.next += 1;
        let (leave, on) = (format!("leave{}", self.next), format!("on{}", self.next));
        self.line(&format!("br_if %{condition}, {leave}, {on}"));
        self.exits.push_str(&format!("{leave}:\n  trap user0\n"));
        let named = self.named(scope);
        self.states.push(Recorded { label: leave, behind: None, named });
        self.label(&on);
    }

    /// What a state names.
    fn named(&mut self, scope: &ObjectScope) -> Vec<(String, Kind)> {
        let mut named = Vec::new();
        for object in &scope.objects {
            let of_object = Kind::Object(object.number, object.tag);
            for form in ["o", "w", "at"] {
                if self.prng.chance(50) {
                    named.push((format!("{form}{}", object.number), of_object));
                }
            }
        }
        for number in scope.ints.iter().chain(&scope.floats) {
            if self.prng.chance(40) {
                named.push((number.clone(), Kind::Number));
            }
        }
        named
    }

    /// Two paths with statements of their own. Behind, fields are known that both have.
    fn diamond(&mut self, scope: &mut ObjectScope, depth: u32) {
        let condition = self.condition(scope);
        self.next += 1;
        let number = self.next;
        self.line(&format!("br_if %{condition}, left{number}, right{number}"));
        let mut arms = Vec::new();
        for side in ["left", "right"] {
            self.label(&format!("{side}{number}"));
            let mut arm = scope.clone();
            self.statements(&mut arm, 3, depth - 1);
            let (int, float) = (self.int(&arm), self.float(&arm));
            self.line(&format!("jump join{number}(%{int}, %{float})"));
            arms.push(arm);
        }
        self.label(&format!("join{number}(%p{number}: i64, %q{number}: f64)"));
        for (index, object) in scope.objects.iter_mut().enumerate() {
            let [left, right] = [&arms[0].objects[index].fields, &arms[1].objects[index].fields];
            object.fields = left.clone();
            object.fields.retain(|offset, held| right.get(offset) == Some(held));
        }
        scope.ints.push(format!("p{number}"));
        scope.floats.push(format!("q{number}"));
    }
}

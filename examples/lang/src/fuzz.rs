//! `wicker fuzz SEED COUNT`: random programs. Each runs in the interpreter, natively, natively with
//! guards that fail at random, with landing tables, and with a collection at every allocation. All
//! must print the same.

use osier::tiers::TableUse;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use wicker::Machine;
use wicker::native::{Counts, NativeError, Tuning};

/// Random numbers: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// A program that is being written.
struct Writer {
    random: Random,
    text: String,
    /// The variables in scope.
    names: Vec<String>,
    /// The functions so far, with their numbers of parameters.
    functions: Vec<(String, usize)>,
    next: usize,
    loops: usize,
}

/// The random program of a seed: one or two functions, and calls of them. The outermost level has
/// no loop, so that code is made for the functions alone.
pub(crate) fn program(seed: u64) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (text, names, functions) = Default::default();
    let mut writer = Writer { random, text, names, functions, next: 0, loops: 0 };
    writer
        .text
        .push_str("var g = 1; var h = [1, 2.5, 3]; var o = {x: 1, y: 0.5}; var s = \"s\";\n");
    for _ in 0..1 + writer.random.below(2) {
        writer.function();
    }
    writer.names = GLOBALS.map(str::to_owned).to_vec();
    for _ in 0..3 + writer.random.below(5) {
        let call = writer.call(1);
        let _ = writeln!(writer.text, "try {{ print({call}, g, s); }} catch e {{ print(e); }}");
    }
    writer.text.push_str("print(g, len(h), o.x, o.y, len(s));\n");
    writer.text
}

/// The variables of the outermost level.
const GLOBALS: [&str; 4] = ["g", "h", "o", "s"];
/// The variables that keep their type.
const FIXED: [&str; 3] = ["h", "o", "s"];

impl Writer {
    fn function(&mut self) {
        let params = self.random.below(4) as usize;
        let name = format!("f{}", self.functions.len());
        self.names = GLOBALS.map(str::to_owned).to_vec();
        let list: Vec<String> = (0..params).map(|index| format!("p{index}")).collect();
        let _ = writeln!(self.text, "func {name}({}) {{", list.join(", "));
        self.names.extend(list);
        self.block(2);
        let value = self.value(1);
        let _ = writeln!(self.text, "return {value};\n}}");
        self.functions.push((name, params));
    }

    fn block(&mut self, depth: u64) {
        let known = self.names.len();
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth);
        }
        self.names.truncate(known);
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn statement(&mut self, depth: u64) {
        let choice = if depth == 0 { self.random.below(5) } else { self.random.below(10) };
        match choice {
            0 | 1 => {
                let (name, value) = (self.fresh(), self.value(2));
                let _ = writeln!(self.text, "var {name} = {value};");
                self.names.push(name);
            }
            2 | 3 => {
                let (name, value) = (self.variable(), self.value(2));
                let _ = writeln!(self.text, "{name} = {value};");
            }
            4 if self.random.below(3) == 0 => {
                let value = self.value(1);
                let change =
                    self.random.of(&["push(h, VALUE)", "s = s + str(VALUE)", "h = [VALUE]"]);
                let change = change.replace("VALUE", &value);
                let _ = writeln!(self.text, "if len(h) + len(s) < 40 {{ {change}; }}");
            }
            4 => {
                let value = self.value(2);
                let target = self.random.of(&["h[0]", "h[len(h) - 1]", "o.x", "o.y", "h[g % 5]"]);
                let _ = writeln!(self.text, "{target} = {value};");
            }
            5 | 6 if self.loops < 2 => {
                let (name, count) = (self.fresh(), self.random.below(12));
                let _ = writeln!(self.text, "for {name} in 0..{count} {{");
                self.names.push(name);
                self.loops += 1;
                self.block(depth - 1);
                self.loops -= 1;
                self.names.pop();
                self.text.push_str("}\n");
            }
            7 => {
                self.text.push_str("try {\n");
                self.block(depth - 1);
                if self.random.below(3) == 0 {
                    let value = self.value(1);
                    let _ = writeln!(self.text, "throw {value};");
                }
                let name = self.fresh();
                let _ = writeln!(self.text, "}} catch {name} {{ print({name});");
                self.block(depth - 1);
                self.text.push_str("}\n");
            }
            _ => {
                let (a, b) = (self.value(2), self.value(2));
                let comparison = self.random.of(&["<", "<=", "==", "!=", ">"]);
                let _ = writeln!(self.text, "if {a} {comparison} {b} {{");
                self.block(depth - 1);
                self.text.push_str("} else {\n");
                self.block(depth - 1);
                self.text.push_str("}\n");
            }
        }
    }

    /// A variable that may hold any value.
    fn variable(&mut self) -> String {
        let is_free = |name: &&String| !FIXED.contains(&&***name);
        let free: Vec<&String> = self.names.iter().filter(is_free).collect();
        free[self.random.below(free.len() as u64) as usize].clone()
    }

    fn call(&mut self, depth: u64) -> String {
        if self.functions.is_empty() {
            return "1".to_owned();
        }
        let (name, params) =
            self.functions[self.random.below(self.functions.len() as u64) as usize].clone();
        let args: Vec<String> = (0..params).map(|_| self.value(depth)).collect();
        format!("{name}({})", args.join(", "))
    }

    /// An expression, mostly a number.
    fn value(&mut self, depth: u64) -> String {
        let choice = if depth == 0 { self.random.below(6) } else { self.random.below(20) };
        match choice {
            0 | 1 | 6..=8 => self.variable(),
            2 => self.random.below(100).to_string(),
            3 => self.random.of(&["0.5", "-1", "2147483647", "0", "1e10", "-0.25"]).to_owned(),
            4 => self
                .random
                .of(&["h[0]", "h[1]", "o.x", "o.y", "len(h)", "byte(s, len(s) - 1)"])
                .to_owned(),
            5 => match self.random.below(12) {
                0 => "nil".to_owned(),
                1 => "\"s\"".to_owned(),
                2 => "true".to_owned(),
                3 => "o.z".to_owned(),
                _ => "3".to_owned(),
            },
            9 if self.loops < 2 => self.call(depth - 1),
            10 => format!("floor({})", self.value(depth - 1)),
            11 => format!("sqrt({})", self.value(depth - 1)),
            12 => {
                let kind = self.random.of(&["!", "-"]);
                format!("({kind}{})", self.value(depth - 1))
            }
            13 => {
                let kind = self.random.of(&["and", "or"]);
                format!("({} {kind} {})", self.value(depth - 1), self.value(depth - 1))
            }
            14 => format!("({{x: {}, y: 2}}).x", self.value(depth - 1)),
            15 => format!("len([{}, 1])", self.value(depth - 1)),
            _ => {
                let operators =
                    ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "+", "-", "*"];
                let op = self.random.of(&operators);
                format!("({} {op} {})", self.value(depth - 1), self.value(depth - 1))
            }
        }
    }
}

/// The output of a program, and how it ends.
fn outcome(text: &str, tuning: Option<Tuning>, is_collecting: bool) -> Result<Ran, String> {
    let mut machine = Machine::new(text).map_err(|error| format!("{error}"))?;
    if is_collecting {
        machine.stress();
    }
    let (ended, counts) = match tuning {
        None => (machine.run().map_err(NativeError::Uncaught), Counts::default()),
        Some(tuning) => match machine.run_native(tuning) {
            Ok(counts) => (Ok(()), counts),
            Err(error) => (Err(error), Counts::default()),
        },
    };
    let mut output = String::from_utf8_lossy(&machine.take_output()).into_owned();
    if let Err(error) = ended {
        let _ = writeln!(output, "{error}");
    }
    Ok(Ran { output, counts, collections: machine.collections() })
}

/// A run of a program.
struct Ran {
    output: String,
    counts: Counts,
    collections: u32,
}

/// Runs `count` programs from a seed on: in the interpreter, natively, and natively with guards
/// that fail at random. In each program, one of the latter two collects at every allocation, and
/// one run of the interpreter does.
///
/// # Errors
/// The first program whose runs differ.
pub(crate) fn run(seed: u64, count: u64) -> Result<(), String> {
    let (mut total, mut collections) = (Counts::default(), 0);
    for seed in seed..seed + count {
        let text = program(seed);
        let exits = if seed % 4 == 0 { 4 } else { 1000 };
        let eager = Tuning { calls: 2, turns: 3, exits, ..Tuning::default() };
        let wanted = outcome(&text, None, false)?.output;
        let is_odd = seed % 2 == 1;
        let chaotic = Tuning { chaos: Some(seed), ..eager };
        let tables = Tuning { tables: Some(TableUse::Everywhere), ..eager };
        let wild = Tuning { tables: Some(TableUse::Everywhere), ..chaotic };
        for (tuning, is_collecting) in [
            (None, true),
            (Some(eager), is_odd),
            (Some(chaotic), !is_odd),
            (Some(tables), !is_odd),
            (Some(wild), is_odd),
        ] {
            let ran = outcome(&text, tuning, is_collecting)?;
            if ran.output != wanted {
                return Err(format!(
                    "seed {seed}, {tuning:?}, collecting: {is_collecting}\n{text}\n\
                     interpreter:\n{wanted}\nother:\n{}",
                    ran.output
                ));
            }
            total.add(ran.counts);
            collections += u64::from(ran.collections);
        }
    }
    let Counts { compiled, exits, entered, refused, plain, rows: [rows, linked], .. } = total;
    let line = format!(
        "{count} programs, 0 differences: {compiled} functions compiled, {} refused, {} without \
         passes, {exits} exits, {entered} loops entered, {rows} rows, {linked} exits to rows, \
         {collections} collections",
        refused.len(),
        plain.len()
    );
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())
}

//! `wicker fuzz SEED COUNT`: random programs. Each runs in the interpreter, natively, natively with
//! guards that fail at random, with landing tables, and with a collection at every allocation. All
//! must print the same.

use osier::tiers::TableUse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use wicker::Machine;
use wicker::native::{Counts, NativeError, RowEvents, Tuning};

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
    /// The small functions of two parameters, which phases call as values.
    small: usize,
}

/// The random program of a seed: one or two functions, or one with phases, and calls of these. The
/// outermost level has no loop, so that code is made for the functions alone.
pub(crate) fn program(seed: u64) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (text, names, functions) = Default::default();
    let mut writer = Writer { random, text, names, functions, next: 0, loops: 0, small: 0 };
    writer
        .text
        .push_str("var g = 1; var h = [1, 2.5, 3]; var o = {x: 1, y: 0.5}; var s = \"s\";\n");
    // Rows take most of the time of such a program.
    if writer.random.below(10) == 0 {
        writer.phases();
        writer.calls_of_phases();
    } else {
        for _ in 0..1 + writer.random.below(2) {
            writer.function();
        }
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

/// The programs from which on a run that makes, enters or leaves too few rows fails: it has judged
/// little.
const FLOOR_FROM: u64 = 100;
/// One program in so many makes a row, and enters one. Half as many leave one.
const TWENTIETH: u64 = 20;

/// The literals that a variable of a loop gets when a phase begins.
const KINDS: [&str; 8] = ["1", "0.5", "7", "-3", "2.25", "1e9", "2147483647", "nil"];
/// Those that are numbers.
const NUMBERS: &[&str] = KINDS.split_at(7).0;

impl Writer {
    /// Small functions, and a function with a loop whose variables change their kinds, and whose
    /// function value changes, from phase to phase. The loop is long enough for code that assumes.
    fn phases(&mut self) {
        self.small = 2 + self.random.below(2) as usize;
        for number in 0..self.small {
            let value = self.number(2, &["a", "b", "a", "b", "g"]);
            let guard = match self.random.below(4) {
                0 => "if a < b { return b; } ",
                1 => "g = g + 1; ",
                _ => "",
            };
            let _ = writeln!(self.text, "func q{number}(a, b) {{ {guard}return {value}; }}");
        }
        self.text.push_str("func w(f, x, n) {\nvar y = x;\nfor i in 0..n {\n");
        for _ in 0..1 + self.random.below(2) {
            let (period, at) = (20 + self.random.below(60), self.random.below(20));
            let change = match self.random.below(3) {
                0 => self.a_small("f"),
                choice => {
                    let kinds = if self.random.below(8) == 0 { &KINDS[..] } else { NUMBERS };
                    let kind = self.random.of(kinds);
                    format!("{} = {kind}", if choice == 1 { "y" } else { "x" })
                }
            };
            let _ = writeln!(self.text, "if i % {period} == {at} {{ {change}; }}");
        }
        let value = self.number(2, &["x", "y", "i", "y", "o.x", "f(y, i)"]);
        let target = self.random.of(&["y", "y", "y", "x", "o.x"]);
        let _ = writeln!(self.text, "{target} = ({value}) % 1000;");
        self.text.push_str("y = f(y, x);\n}\nreturn y;\n}\n");
    }

    /// The statement that sets a variable to one of the small functions.
    fn a_small(&mut self, name: &str) -> String {
        format!("{name} = q{}", self.random.below(self.small as u64))
    }

    /// Calls of the function with phases.
    fn calls_of_phases(&mut self) {
        for _ in 0..2 + self.random.below(4) {
            let (small, turns) = (self.random.below(self.small as u64), self.random.below(150));
            let x = self.random.of(NUMBERS);
            let _ = writeln!(
                self.text,
                "try {{ print(w(q{small}, {x}, {turns}), g, o.x); }} catch e {{ print(e); }}"
            );
        }
    }

    /// An expression of these operands that is most often a number.
    fn number(&mut self, depth: u64, operands: &[&str]) -> String {
        match if depth == 0 { self.random.below(2) } else { self.random.below(6) } {
            0 => self.random.of(operands).to_owned(),
            1 => self.random.of(&["1", "2", "0.5", "3", "-1", "0.25"]).to_owned(),
            _ => {
                let op = self.random.of(&["+", "-", "*", "+", "-", "*", "%", "//", "/"]);
                let (a, b) = (self.number(depth - 1, operands), self.number(depth - 1, operands));
                format!("({a} {op} {b})")
            }
        }
    }

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
                let change = self.random.of(&[
                    "push(h, VALUE)",
                    "s = s + str(VALUE)",
                    "s = slice(s, g, 9)",
                    "h = [VALUE]",
                ]);
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
/// The first program whose runs differ. Too few rows, in a run of at least [`FLOOR_FROM`] programs.
pub(crate) fn run(seed: u64, count: u64) -> Result<(), String> {
    let (mut total, mut collections) = (Counts::default(), 0);
    // The programs that have made rows, and those that have left some.
    let (mut with_rows, mut with_left) = (0, 0);
    for seed in seed..seed + count {
        let before = total.rows;
        let text = program(seed);
        let exits = if seed % 4 == 0 { 4 } else { 1000 };
        // Later code knows more kinds of values, and more callees.
        let turns = [3, 3, 12, 30][(seed / 4 % 4) as usize];
        let leaves_objects_out = seed % 2 == 0;
        let eager = Tuning { calls: 2, turns, exits, leaves_objects_out, ..Tuning::default() };
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
        with_rows += u64::from(total.rows.made > before.made);
        with_left += u64::from(total.rows.left > before.left);
    }
    let Counts {
        compiled, exits, entered, objects, objects_made, refused, plain, kept, rows, ..
    } = total;
    let RowEvents { made, plain: unassuming, entered: into_rows, left, linked } = rows;
    let line = format!(
        "{count} programs, 0 differences: {compiled} functions compiled, {} refused, {} without \
         passes, {exits} exits, {objects} objects left out and \
         {objects_made} made by exits, {} functions with objects that could go, {entered} loops \
         entered, {made} rows made by {with_rows} \
         programs, \
         {into_rows} entered, {left} left by {with_left}, {unassuming} rows that assume nothing, \
         {linked} exits to rows, {collections} collections",
        refused.len(),
        plain.len(),
        kept.len()
    );
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())?;
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for told in refused.iter().chain(&plain).chain(&kept) {
        *reasons.entry(told.split_once(": ").map_or(&told[..], |(_, why)| why)).or_default() += 1;
    }
    for (why, times) in reasons {
        writeln!(io::stdout(), "  {times} times: {why}").map_err(|error| error.to_string())?;
    }
    let is_floor_met = with_rows >= count / TWENTIETH && with_left >= count / (2 * TWENTIETH);
    match count < FLOOR_FROM || is_floor_met {
        true => Ok(()),
        false => Err(format!("too few rows for {count} programs")),
    }
}

//! `wicker fuzz SEED COUNT`: random programs, each run by the interpreter, natively, and natively
//! with guards that fail at random. The three must print the same.

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

/// The random program of a seed.
pub(crate) fn program(seed: u64) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (text, names, functions) = Default::default();
    let mut writer = Writer { random, text, names, functions, next: 0, loops: 0 };
    writer.text.push_str("var g = 1; var h = [1, 2.5, 3]; var o = {x: 1, y: 0.5};\n");
    for _ in 0..1 + writer.random.below(3) {
        writer.function();
    }
    writer.names = ["g", "h", "o"].map(str::to_owned).to_vec();
    let count = 4 + writer.random.below(20);
    let _ = writeln!(writer.text, "for turn in 0..{count} {{ try {{");
    writer.names.push("turn".to_owned());
    writer.block(2);
    let call = writer.call(1);
    let _ =
        writeln!(writer.text, "print(turn, {call}, g);\n}} catch e {{ print(\"caught\", e); }} }}");
    writer.text.push_str("print(g, len(h), o.x, o.y);\n");
    writer.text
}

impl Writer {
    fn function(&mut self) {
        let params = self.random.below(4) as usize;
        let name = format!("f{}", self.functions.len());
        self.names = ["g", "h", "o"].map(str::to_owned).to_vec();
        let list: Vec<String> = (0..params).map(|index| format!("p{index}")).collect();
        let _ = writeln!(self.text, "func {name}({}) {{", list.join(", "));
        self.names.extend(list);
        self.block(3);
        let value = self.value(2);
        let _ = writeln!(self.text, "return {value};\n}}");
        self.functions.push((name, params));
    }

    fn block(&mut self, depth: u64) {
        let known = self.names.len();
        for _ in 0..1 + self.random.below(4) {
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
                let fixed = ["h", "o", "turn"];
                let free: Vec<&String> =
                    self.names.iter().filter(|name| !fixed.contains(&&***name)).collect();
                let name = free[self.random.below(free.len() as u64) as usize].clone();
                let value = self.value(3);
                let _ = writeln!(self.text, "{name} = {value};");
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
            0 | 1 | 6..=8 => {
                let names: Vec<&String> =
                    self.names.iter().filter(|name| !["h", "o"].contains(&&***name)).collect();
                names[self.random.below(names.len() as u64) as usize].clone()
            }
            2 => self.random.below(100).to_string(),
            3 => self.random.of(&["0.5", "-1", "2147483647", "0", "1e10", "-0.25"]).to_owned(),
            4 => self.random.of(&["h[0]", "h[1]", "o.x", "o.y", "len(h)"]).to_owned(),
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
fn outcome(text: &str, tuning: Option<Tuning>) -> Result<(String, Counts), String> {
    let mut machine = Machine::new(text).map_err(|error| format!("{error}"))?;
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
    Ok((output, counts))
}

/// Runs `count` programs from a seed on.
///
/// # Errors
/// The first program whose runs differ.
pub(crate) fn run(seed: u64, count: u64) -> Result<(), String> {
    let mut total = Counts::default();
    for seed in seed..seed + count {
        let text = program(seed);
        let eager = Tuning { calls: 2, turns: 3, exits: 8, ..Tuning::default() };
        let wanted = outcome(&text, None)?.0;
        for chaos in [None, Some(seed | 1)] {
            let (got, counts) = outcome(&text, Some(Tuning { chaos, ..eager }))?;
            if got != wanted {
                return Err(format!(
                    "seed {seed}, guards {}\n{text}\ninterpreter:\n{wanted}\nnative:\n{got}",
                    if chaos.is_some() { "fail at random" } else { "as they are" },
                ));
            }
            total.compiled += counts.compiled;
            total.refused.extend(counts.refused);
            total.plain.extend(counts.plain);
            total.exits += counts.exits;
            total.entered += counts.entered;
        }
    }
    let Counts { compiled, refused, plain, exits, entered, .. } = total;
    let line = format!(
        "{count} programs, 0 differences: {compiled} functions compiled, {} refused, {} without passes, \
         {exits} exits, {entered} loops entered",
        refused.len(),
        plain.len()
    );
    writeln!(io::stdout(), "{line}").map_err(|error| error.to_string())?;
    for what in refused.iter().take(3) {
        writeln!(io::stdout(), "refused: {what}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

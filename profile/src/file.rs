//! The file format of profiles: JSON, one function per line. `docs/profile.md` describes it.
//!
//! Files are untrusted. [`Profile::read`] compares each function with the module and rejects a
//! profile that does not fit. So a profile in memory names only entities of the module.

use super::{FunctionProfile, Profile};
use interp::{CallTarget, CallTargets, MAX_TARGETS};
use ir::text::print_function;
use ir::{Func, Function, Inst, Module, Opcode, Type};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// Functions of one file.
pub const MAX_FUNCTIONS: usize = 1 << 20;

/// Why a profile is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProfileError {
    /// The text is not JSON of this form.
    Malformed(String),
    /// The format has another version.
    OtherFormat(u32),
    /// The module lacks a function.
    NoSuchFunction(String),
    /// The body of a function differs from the profiled body.
    OtherModule(String),
    /// A part does not fit the function, or a function occurs twice.
    DoesNotFit {
        /// The function.
        function: String,
        /// The part and the cause.
        what: String,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Malformed(what) => write!(f, "it is not a profile: {what}"),
            ProfileError::OtherFormat(found) => {
                write!(f, "the profile has format {found}; this program reads format {FORMAT}")
            }
            ProfileError::NoSuchFunction(name) => {
                write!(f, "the profile is of another module: this one has no function {name}")
            }
            ProfileError::OtherModule(name) => {
                write!(f, "the profile is of another module: the body of {name} differs")
            }
            ProfileError::DoesNotFit { function, what } => write!(f, "{function}: {what}"),
        }
    }
}

impl std::error::Error for ProfileError {}

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    /// The version, which [`Version`] has read.
    #[serde(rename = "profile")]
    _version: serde::de::IgnoredAny,
    functions: Vec<FileFunction>,
}

/// A function in a file. Instructions are numbered from 0 in the order of the text form, and bits
/// are hexadecimal.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileFunction {
    func: u32,
    name: String,
    key: Bits,
    calls: u64,
    arguments: Vec<Option<Bits>>,
    branches: Vec<FileBranch>,
    targets: Vec<FileTargets>,
    values: Vec<FileValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileBranch {
    at: u64,
    sides: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTargets {
    at: u64,
    targets: Vec<FileTarget>,
    others: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTarget {
    index: u64,
    func: u32,
    calls: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileValue {
    at: u64,
    bits: Bits,
}

/// 64 bits as text, because readers of JSON round large numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bits(u64);

impl Serialize for Bits {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Bits, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        let bits = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        bits.map(Bits).ok_or_else(|| serde::de::Error::custom("expected bits such as \"0x1f\""))
    }
}

/// The key of a base: a digest of its text (64-bit FNV-1a), which does not depend on the build of
/// this program. It detects programs that differ by accident, not forgeries.
fn key(module: &Module, base: &Function) -> Bits {
    let text = print_function(module, base);
    Bits(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    }))
}

impl Profile {
    /// The file of a profile of this module. Cost: linear in the functions of the profile and their
    /// text.
    ///
    /// # Panics
    /// If the module lacks a function of the profile, or an instruction.
    pub fn write(&self, module: &Module) -> String {
        let lines = self.functions.iter().map(|(func, profile)| {
            let base = module.body(*func).expect("the profile is one of the module");
            let function = written(module, *func, base, profile);
            serde_json::to_string(&function).expect("a profile has a JSON form")
        });
        let lines: Vec<String> = lines.collect();
        format!("{{\"profile\":{FORMAT},\"functions\":[\n{}\n]}}\n", lines.join(",\n"))
    }

    /// The profile in a file, which must be a profile of this module. Cost: linear in the file, and
    /// in the text of the functions that it names.
    ///
    /// # Errors
    /// [`ProfileError`], which names the function.
    pub fn read(text: &str, module: &Module) -> Result<Profile, ProfileError> {
        // A file of another version may have other keys, so the version comes first.
        let Version { profile } = parsed(text)?;
        if profile != FORMAT {
            return Err(ProfileError::OtherFormat(profile));
        }
        let ProfileFile { functions, .. } = parsed(text)?;
        if functions.len() > MAX_FUNCTIONS {
            return Err(ProfileError::Malformed(format!("more than {MAX_FUNCTIONS} functions")));
        }
        let mut profile = Profile::default();
        for function in functions {
            let found = func(module, function.func).and_then(|f| Some((f, module.body(f)?)));
            let (func, base) =
                found.ok_or_else(|| ProfileError::NoSuchFunction(shown(&function.name)))?;
            let misfit = |what| ProfileError::DoesNotFit { function: shown(base.name()), what };
            // Test this before the key: the key costs the size of the function, not of the file's
            // line.
            if profile.functions.contains_key(&func) {
                return Err(misfit("the function occurs twice".to_owned()));
            }
            if key(module, base) != function.key {
                return Err(ProfileError::OtherModule(shown(&function.name)));
            }
            let read = Reader { module, base, insts: base.all_insts().collect() }.read(function);
            profile.functions.insert(func, read.map_err(misfit)?);
        }
        Ok(profile)
    }
}

/// The version of a file. Other keys are ignored.
#[derive(Deserialize)]
struct Version {
    profile: u32,
}

fn parsed<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ProfileError> {
    // Messages of unknown keys quote the file.
    serde_json::from_str(text).map_err(|error| ProfileError::Malformed(shown(&error.to_string())))
}

/// The most characters of a file that a message shows.
const MAX_SHOWN: usize = 200;

/// A part of a file as messages show it. Characters that do not print as themselves are escaped.
fn shown(text: &str) -> String {
    let escaped = |c: char| match c {
        '\'' | '"' | '\\' => String::from(c),
        c => c.escape_debug().collect(),
    };
    text.chars().take(MAX_SHOWN).map(escaped).collect()
}

fn written(
    module: &Module,
    func: Func,
    base: &Function,
    profile: &FunctionProfile,
) -> FileFunction {
    let places: BTreeMap<Inst, u64> = base.all_insts().zip(0..).collect();
    let at = |inst: &Inst| places[inst];
    let target =
        |t: &CallTarget| FileTarget { index: t.index, func: t.func.as_u32(), calls: t.calls };
    let branches = profile.branches.iter();
    let targets = profile.targets.iter();
    FileFunction {
        func: func.as_u32(),
        name: base.name().to_owned(),
        key: key(module, base),
        calls: profile.calls,
        arguments: profile.arguments.iter().map(|bits| bits.map(Bits)).collect(),
        branches: branches
            .map(|(inst, sides)| FileBranch { at: at(inst), sides: sides.clone() })
            .collect(),
        targets: targets
            .map(|(inst, found)| FileTargets {
                at: at(inst),
                targets: found.targets.iter().map(target).collect(),
                others: found.others,
            })
            .collect(),
        values: (profile.values.iter())
            .map(|(inst, bits)| FileValue { at: at(inst), bits: Bits(*bits) })
            .collect(),
    }
}

/// Reads the parts of one function. Errors are the part and the cause.
struct Reader<'a> {
    module: &'a Module,
    base: &'a Function,
    insts: Vec<Inst>,
}

impl Reader<'_> {
    fn read(&self, function: FileFunction) -> Result<FunctionProfile, String> {
        Ok(FunctionProfile {
            calls: function.calls,
            arguments: self.arguments(&function.arguments, function.calls)?,
            branches: self.each(
                function.branches,
                |b| b.at,
                |inst, b| self.branch(inst, b.sides),
            )?,
            targets: self.each(function.targets, |t| t.at, |inst, t| self.targets(inst, t))?,
            values: self.each(function.values, |v| v.at, |inst, v| self.value(inst, v.bits.0))?,
        })
    }

    /// Reads a list of parts by instruction.
    fn each<P, T>(
        &self,
        parts: Vec<P>,
        at: impl Fn(&P) -> u64,
        read: impl Fn(Inst, P) -> Result<T, String>,
    ) -> Result<BTreeMap<Inst, T>, String> {
        let mut all = BTreeMap::new();
        for part in parts {
            let at = at(&part);
            let inst = usize::try_from(at).ok().and_then(|at| self.insts.get(at));
            let inst = *inst.ok_or_else(|| format!("it has no instruction {at}"))?;
            let named = |what: String| format!("instruction {at}: {what}");
            if all.insert(inst, read(inst, part).map_err(named)?).is_some() {
                return Err(named("it occurs twice".to_owned()));
            }
        }
        Ok(all)
    }

    fn arguments(&self, found: &[Option<Bits>], calls: u64) -> Result<Vec<Option<u64>>, String> {
        let types = &self.base.signature().params;
        // A function without calls has no arguments; a transition may have begun its runs.
        if found.len() != types.len() && (calls > 0 || !found.is_empty()) {
            return Err(format!("{} arguments for {} parameters", found.len(), types.len()));
        }
        let all = found.iter().zip(types);
        all.map(|(bits, ty)| bits.map(|bits| fit(bits.0, *ty)).transpose()).collect()
    }

    fn branch(&self, inst: Inst, sides: Vec<u64>) -> Result<Vec<u64>, String> {
        let data = self.base.inst(inst);
        let targets = match data.opcode {
            Opcode::BrIf | Opcode::Switch => data.targets.len(),
            other => return Err(format!("{} is no branch", other.name())),
        };
        match sides.len() == targets {
            true => Ok(sides),
            false => Err(format!("{} sides for {targets} targets", sides.len())),
        }
    }

    fn targets(&self, inst: Inst, found: FileTargets) -> Result<CallTargets, String> {
        let data = self.base.inst(inst);
        let Some(index) = data.args.last().filter(|_| data.opcode == Opcode::CallIndirect) else {
            return Err(format!("{} is no indirect call", data.opcode.name()));
        };
        let ty = self.base.value_type(*index);
        if found.targets.len() > MAX_TARGETS {
            return Err(format!("{} targets; the limit is {MAX_TARGETS}", found.targets.len()));
        }
        let target = |t: FileTarget| {
            fit(t.index, ty)?;
            match func(self.module, t.func) {
                Some(func) => Ok(CallTarget { index: t.index, func, calls: t.calls }),
                None => Err(format!("the module has no function {}", t.func)),
            }
        };
        let targets = found.targets.into_iter().map(target).collect::<Result<_, _>>()?;
        Ok(CallTargets { targets, others: found.others })
    }

    fn value(&self, inst: Inst, bits: u64) -> Result<u64, String> {
        let data = self.base.inst(inst);
        match data.result() {
            Some(result) if is_watched(data.opcode) => fit(bits, self.base.value_type(result)),
            _ => Err(format!("{} is no load", data.opcode.name())),
        }
    }
}

/// The function with a number, which comes from the file. `None` if the module has no such
/// function.
fn func(module: &Module, number: u32) -> Option<Func> {
    let is_one = usize::try_from(number).is_ok_and(|number| number < module.funcs.len());
    is_one.then(|| Func::from_u32(number))
}

/// Bits, if they fit a type.
fn fit(bits: u64, ty: Type) -> Result<u64, String> {
    match bits & !ty.mask() {
        0 => Ok(bits),
        _ => Err(format!("{bits:#x} does not fit {ty}")),
    }
}

/// Whether an instruction is a load or reads a global, so that its values are watched.
fn is_watched(opcode: Opcode) -> bool {
    use ir::Shape;
    matches!(opcode.shape(), Shape::Load(_) | Shape::GlobalGet)
}

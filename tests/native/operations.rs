//! Every operation on values at every type and operand types, on special operands: native code
//! against [`ir::eval`].
//!
//! Each operation is compiled with its operands in registers, and with the last or the first of
//! them constant. Cranelift folds constants or selects other instructions for them.

use crate::both::settings;
use interp::{Limits, NoHost, Options, Outcome};
use ir::eval::{accepts, eval, is_evaluated};
use ir::module::FuncDecl;
use ir::{Func, FunctionBuilder, Imm, InstSpec, Module, Opcode, Signature, Target, Type};
use jit::Vm;
use osier::tiers;
use std::sync::Arc;

/// An operation with its types.
#[derive(Clone, Debug)]
struct Typed {
    opcode: Opcode,
    ty: Type,
    operands: Vec<Type>,
}

/// All operations that [`accepts`] allows.
fn operations() -> Vec<Typed> {
    let mut found = Vec::new();
    for opcode in Opcode::ALL.iter().copied().filter(|opcode| is_evaluated(*opcode)) {
        for ty in Type::ALL.into_iter().filter(|ty| opcode.allows_type(*ty)) {
            for first in Type::ALL {
                let lists = [vec![first], vec![first, first], vec![first, ty, ty]];
                let fits = lists.into_iter().filter(|operands| accepts(opcode, ty, operands));
                found.extend(fits.map(|operands| Typed { opcode, ty, operands }));
            }
        }
    }
    found
}

/// Operands at the boundaries of the behavior of operations, by type.
pub(crate) fn special(ty: Type) -> Vec<u64> {
    let mask = ty.mask();
    let mut found: Vec<u64> = match ty {
        Type::F32 => floats().into_iter().map(|x| u64::from((x as f32).to_bits())).collect(),
        Type::F64 => floats().into_iter().map(f64::to_bits).collect(),
        Type::FuncRef | Type::ExternRef => vec![0, 1, 2],
        _ => {
            let (bits, sign) = (u64::from(ty.bits()), mask / 2 + 1);
            vec![
                0,
                1,
                2,
                7,
                bits - 1,
                bits,
                bits + 1,
                0x80,
                0x7f,
                0x8000,
                0xffff_8000,
                sign - 1,
                sign,
                sign + 1,
                mask - 1,
                mask,
            ]
        }
    };
    let (quiet, infinity) =
        if ty == Type::F32 { (1 << 22, 0x7f80_0000) } else { (1 << 51, 0x7ff0 << 48) };
    if ty.is_float() {
        // Neighbors of the smallest and the largest number, and NaNs: signaling, canonical, with a
        // payload.
        found.extend([
            1,
            (quiet << 1) - 1,
            quiet << 1,
            infinity - 1,
            infinity + 1,
            infinity | quiet,
            infinity | quiet | 5,
        ]);
        found.extend(found.clone().into_iter().map(|bits| bits ^ (mask / 2 + 1)));
    }
    found.iter_mut().for_each(|bits| *bits &= mask);
    found.sort_unstable();
    found.dedup();
    found
}

/// Numbers at which conversions start to trap, ties, and numbers that no type represents exactly.
fn floats() -> Vec<f64> {
    let mut found = vec![0.0, 0.1, 0.5, 1.0, 1.5, 2.5, 1e10, 1e300, f64::INFINITY, 0.999_999_999];
    for exponent in [7, 8, 15, 16, 31, 32, 63, 64] {
        let bound = 2f64.powi(exponent);
        found.extend([
            bound,
            bound - 1.0,
            bound + 1.0,
            bound - 0.5,
            bound * (1.0 - 2f64.powi(-24)),
        ]);
    }
    found
}

/// A module with the operation as a function of its operands. Further functions have one operand
/// constant: they take an index into the constants, and the other operands.
struct Compiled {
    module: Arc<Module>,
    plain: Func,
    with_constants: Vec<(usize, Vec<u64>, Func)>,
}

fn add(
    module: &mut Module,
    name: &str,
    params: &[Type],
    result: Type,
    fill: impl FnOnce(&mut FunctionBuilder),
) -> Func {
    let signature = Signature::new(params, &[result]);
    let mut builder = FunctionBuilder::new(name, signature.clone());
    fill(&mut builder);
    let sig = module.sig(&signature);
    let func = module.funcs.push(FuncDecl {
        name: name.to_owned(),
        sig,
        import: None,
        effect: Default::default(),
    });
    module.define(func, builder.finish().expect("it is well-formed").function);
    func
}

impl Typed {
    fn result(&self) -> Type {
        self.opcode.result_type(self.ty).expect("an operation on values has a result")
    }

    fn eval(&self, args: &[u64]) -> Result<u64, ir::TrapKind> {
        eval(self.opcode, self.ty, self.operands[0], args)
    }

    fn compile(&self) -> Compiled {
        let mut module = Module::new();
        let plain = add(&mut module, "plain", &self.operands, self.result(), |builder| {
            let entry = builder.create_block();
            let args: Vec<_> =
                self.operands.iter().map(|ty| builder.append_param(entry, *ty)).collect();
            builder.switch_to(entry);
            let result = builder.op(self.opcode, self.ty, &args);
            builder.ret(&[result]);
        });
        let constant = |position: &usize| {
            let constants = special(self.operands[*position]);
            let func = self.with_constants(&mut module, *position, &constants);
            (*position, constants, func)
        };
        // The only constant references are null and functions of the module.
        let positions =
            (0..self.operands.len()).filter(|position| !self.operands[*position].is_ref());
        let with_constants = positions.collect::<Vec<_>>().iter().map(constant).collect();
        Compiled { module: Arc::new(module), plain, with_constants }
    }

    fn with_constants(&self, module: &mut Module, position: usize, constants: &[u64]) -> Func {
        let mut params = self.operands.clone();
        params[position] = Type::I32;
        add(module, &format!("constant{position}"), &params, self.result(), |builder| {
            let entry = builder.create_block();
            let mut args: Vec<_> =
                params.iter().map(|ty| builder.append_param(entry, *ty)).collect();
            let number = args[position];
            let arms: Vec<_> = constants.iter().map(|_| builder.create_block()).collect();
            builder.switch_to(entry);
            let targets = arms.iter().map(|arm| Target::new(*arm, &[])).collect();
            builder.insert(InstSpec::terminator(Opcode::Switch, &[number], targets));
            for (arm, bits) in arms.iter().zip(constants) {
                builder.switch_to(*arm);
                args[position] = builder.insert_value(InstSpec::new(
                    Opcode::Const,
                    self.operands[position],
                    Imm::Bits(*bits),
                    &[],
                ));
                let result = builder.op(self.opcode, self.ty, &args);
                builder.ret(&[result]);
            }
        })
    }
}

/// All combinations of special operands.
fn operand_lists(types: &[Type]) -> Vec<Vec<u64>> {
    types.iter().fold(vec![Vec::new()], |lists, ty| {
        let special = special(*ty);
        // An operation with three operands is a `select`, which does not look at the bits.
        let kept = if types.len() == 3 { &special[..special.len().min(8)] } else { &special[..] };
        lists
            .iter()
            .flat_map(|list| kept.iter().map(|bits| [list.as_slice(), &[*bits]].concat()))
            .collect()
    })
}

/// Calls a function natively and compares the result.
fn call(
    vm: &mut Vm,
    func: Func,
    args: &[u64],
    wanted: Result<u64, ir::TrapKind>,
) -> Result<(), String> {
    let outcome = tiers::invoke(vm, func, args, &mut NoHost).map_err(|error| error.to_string())?;
    let found = match &outcome {
        Outcome::Returned(values) => Ok(values[0]),
        Outcome::Trapped { kind, .. } => Err(*kind),
        other => return Err(other.to_string()),
    };
    if found == wanted {
        Ok(())
    } else {
        Err(format!("of {args:x?}: {found:x?}, and not {wanted:x?}"))
    }
}

/// Compares an operation on all operands. Returns the number of calls.
fn compare(typed: &Typed) -> Result<usize, String> {
    let compiled = typed.compile();
    let mut calls = 0;
    for setting in [&settings()[0], &settings()[3]] {
        let told = |what: String| format!("{typed:?} ({}) {what}", setting.name);
        let vm = Vm::new(&setting.engine, &compiled.module, Limits::default(), Options::traced());
        let mut vm = vm.map_err(|error| told(error.to_string()))?;
        vm.set_tiering(Box::new(tiers::Eager::new(tiers::NoObserver)));
        for args in operand_lists(&typed.operands) {
            call(&mut vm, compiled.plain, &args, typed.eval(&args)).map_err(told)?;
            calls += 1;
            for (position, constants, func) in &compiled.with_constants {
                let Some(number) = constants.iter().position(|bits| *bits == args[*position])
                else {
                    continue;
                };
                let mut given = args.clone();
                given[*position] = number as u64;
                call(&mut vm, *func, &given, typed.eval(&args))
                    .map_err(|what| told(format!("with a constant {what}")))?;
                calls += 1;
            }
        }
    }
    Ok(calls)
}

#[test]
fn every_operation_at_every_type() {
    let operations = operations();
    let missing = Opcode::ALL
        .iter()
        .filter(|o| is_evaluated(**o) && !operations.iter().any(|t| t.opcode == **o));
    assert_eq!(missing.count(), 0, "operations without a type");
    let compared: Vec<Result<usize, String>> = operations.iter().map(compare).collect();
    let wrong: Vec<&String> = compared.iter().filter_map(|c| c.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} operations are wrong: {wrong:#?}", wrong.len());
    let calls: usize = compared.iter().flatten().sum();
    assert!(
        operations.len() >= 244 && calls > 1_500_000,
        "{} operations, {calls} calls",
        operations.len()
    );
}

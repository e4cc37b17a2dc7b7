//! The generator: its programs are valid, and contain the features it promises.

use interp::{Limits, Machine, NoHost, NoObserver, Outcome};
use ir::text::{parse_module, print_module};
use ir::verifier::verify_module;
use ir::{Func, Function, Imm, Inst, Module, Opcode, TrapKind, Type};
use osier_verify::generate::{CountingHost, Feature, MAIN, Statistics, Weights, generate};
use std::collections::{BTreeMap, BTreeSet};

const SEEDS: u64 = 3000;

/// Sizes from tiny to large, in a fixed rotation.
fn size_of(seed: u64) -> u32 {
    [4, 12, 25, 40, 80][(seed % 5) as usize]
}

#[test]
fn the_verifier_accepts_every_program() {
    for seed in 0..SEEDS {
        let program = generate(seed, size_of(seed), &Weights::default());
        let findings = verify_module(&program.module);
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
    }
}

#[test]
fn programs_round_trip_through_text() {
    for seed in 0..100 {
        let program = generate(seed, size_of(seed), &Weights::default());
        let text = print_module(&program.module);
        let parsed = parse_module(&text)
            .unwrap_or_else(|errors| panic!("seed {seed}: {}\n{text}", errors[0]));
        assert_eq!(print_module(&parsed), text, "seed {seed}");
    }
}

/// Every run ends within the bound, and most return a result. Some runs trap, but traps do not hide
/// the rest of the programs.
#[test]
fn programs_terminate_and_rarely_trap() {
    let (mut runs, mut trapped, mut executed, mut changed_memory) = (0u64, 0u64, 0u64, 0u64);
    for seed in 0..SEEDS {
        let program = generate(seed, size_of(seed), &Weights::default());
        let limits = Limits { fuel: program.steps, ..Limits::default() };
        for arguments in &program.arguments {
            let mut machine =
                Machine::new(&program.module, limits).expect("the module can be instantiated");
            let before = machine.memory_digest();
            let outcome = machine.invoke(program.main, arguments, &mut NoHost, &mut NoObserver);
            runs += 1;
            executed += program.steps - machine.fuel();
            changed_memory += u64::from(machine.memory_digest() != before);
            match outcome {
                Outcome::Returned(_) => {}
                Outcome::Trapped { .. } => trapped += 1,
                other => panic!("seed {seed} on {arguments:?}: {other}"),
            }
        }
    }
    let percent = |count: u64| 100 * count / runs;
    assert!((5..=30).contains(&percent(trapped)), "{} % of runs trap", percent(trapped));
    assert!(percent(changed_memory) >= 40, "{} % of runs change memory", percent(changed_memory));
    assert!(executed / runs >= 80, "{} instructions a run", executed / runs);
}

/// Traps with operands of both widths are planted, also in functions that others call, and runs end
/// in them with more than one value.
#[test]
fn traps_have_operands() {
    let (mut types, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..SEEDS {
        let program = generate(seed, size_of(seed), &Weights::default().and_trees());
        for (_, f) in program.module.defined() {
            let traps = f.all_insts().map(|i| f.inst(i)).filter(|i| i.opcode == Opcode::Trap);
            types.extend(traps.filter_map(|data| data.args.first()).map(|v| f.value_type(*v)));
        }
        let limits = Limits { fuel: program.steps, ..Limits::default() };
        for arguments in &program.arguments {
            let mut machine =
                Machine::new(&program.module, limits).expect("the module can be instantiated");
            let host = &mut CountingHost::default();
            let outcome = machine.invoke(program.main, arguments, host, &mut NoObserver);
            ended.extend(outcome.trap_operand());
        }
    }
    assert_eq!(types, BTreeSet::from([Type::I32, Type::I64]));
    assert!(ended.len() > 10, "{ended:?}");
}

/// Facts come on top: programs that plant them are valid, end, and have them mostly, in all types.
#[test]
fn facts_are_planted_on_demand() {
    let (mut with_facts, mut selects) = (0, BTreeSet::new());
    const PROGRAMS: u64 = 400;
    for seed in 0..PROGRAMS {
        let program = generate(seed, size_of(seed), &Weights::with_facts());
        let findings = verify_module(&program.module);
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
        with_facts += u64::from(program.planted.of(Feature::Fact) > 0);
        for (_, f) in program.module.defined() {
            let all = f.all_insts().map(|inst| f.inst(inst));
            selects.extend(all.filter(|i| i.opcode == Opcode::Select).map(|i| i.ty));
        }
        let limits = Limits { fuel: program.steps, ..Limits::default() };
        for arguments in &program.arguments {
            let mut machine =
                Machine::new(&program.module, limits).expect("the module can be instantiated");
            let outcome = machine.invoke(program.main, arguments, &mut NoHost, &mut NoObserver);
            assert!(!matches!(outcome, Outcome::OutOfFuel(_)), "seed {seed}: {outcome}");
        }
    }
    assert!(2 * with_facts > PROGRAMS, "{with_facts} programs with facts");
    assert!(selects.contains(&Type::FuncRef) && selects.len() >= 7, "{selects:?}");
}

#[test]
fn a_seed_makes_one_program() {
    for seed in 0..50 {
        let first = generate(seed, 40, &Weights::default());
        let again = generate(seed, 40, &Weights::default());
        assert_eq!(first.arguments, again.arguments);
        assert_eq!((first.steps, &first.planted), (again.steps, &again.planted));
        for (func, function) in first.module.defined() {
            let other = again.module.body(func).expect("equal programs have equal functions");
            assert_eq!(function.same_as(other), Ok(()), "seed {seed}");
        }
    }
}

#[test]
fn the_main_function_is_exported_and_its_arguments_fit() {
    for seed in 0..200 {
        let program = generate(seed, size_of(seed), &Weights::default());
        assert_eq!(program.module.lookup(MAIN), Some(program.main));
        let params = &program.module.signature(program.main).params;
        assert!(!program.arguments.is_empty());
        for arguments in &program.arguments {
            assert_eq!(arguments.len(), params.len());
            assert!(
                arguments.iter().zip(params).all(|(bits, ty)| bits & !ty.mask() == 0),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn a_weight_of_zero_leaves_the_feature_out() {
    for feature in Feature::ALL {
        // Types also come from signatures and globals. Only the types that bodies choose are
        // counted.
        let weights = Weights::default().with(*feature, 0);
        for seed in 0..40 {
            let count = generate(seed, 60, &weights).planted.of(*feature);
            let unavoidable =
                matches!(feature, Feature::EdgeConstant | Feature::Load | Feature::Division);
            assert!(count == 0 || unavoidable, "seed {seed} plants {feature} {count} times");
        }
    }
}

#[test]
fn without_weights_a_program_is_a_straight_line() {
    let weights = Feature::ALL.iter().fold(Weights::default(), |w, f| w.with(*f, 0));
    let statistics = generate(3, 50, &weights).statistics();
    assert_eq!(statistics.blocks, statistics.functions);
    assert_eq!(statistics.loops, 0);
}

/// Operations on references that a collector may move.
const OF_REFERENCES: [Opcode; 3] = [Opcode::RefBits, Opcode::RefOf, Opcode::RefEq];

#[test]
fn programs_with_references_contain_each_operation_on_them() {
    let mut total = Statistics::default();
    for seed in 0..100 {
        let weights = Weights::default().and_references();
        total.add(&generate(seed, size_of(seed), &weights).statistics());
    }
    for opcode in OF_REFERENCES {
        let count = total.opcodes.get(&opcode).copied().unwrap_or(0);
        assert!(count >= 20, "{} occurs {count} times", opcode.name());
    }
}

/// Calls of functions with declared effects.
const DECLARED: [Opcode; 3] = [Opcode::CallPure, Opcode::CallReads, Opcode::CallOutside];

/// A floor: each kind of call occurs, and pure calls are repeated.
#[test]
fn programs_with_declared_calls_contain_each_kind() {
    let (mut total, mut repeated) = (Statistics::default(), 0);
    for seed in 0..100 {
        let program = generate(seed, size_of(seed), &Weights::default().and_declared_calls());
        total.add(&program.statistics());
        for (_, body) in program.module.defined() {
            let calls = body.all_insts().map(|inst| body.inst(inst));
            let mut calls: Vec<_> = calls
                .filter(|data| data.opcode == Opcode::CallPure)
                .map(|data| (data.imm, data.args.clone()))
                .collect();
            calls.sort();
            repeated += calls.windows(2).filter(|two| two[0] == two[1]).count();
        }
    }
    for opcode in DECLARED {
        let count = total.opcodes.get(&opcode).copied().unwrap_or(0);
        assert!(count >= 120, "{} occurs {count} times", opcode.name());
    }
    assert!(repeated >= 50, "{repeated} pure calls repeat another");
}

/// A floor: most programs access both host memories.
#[test]
fn programs_with_host_memories_access_them() {
    let mut accesses = [0; 3];
    for seed in 0..100 {
        let weights = Weights::default().and_host_memories();
        let module = generate(seed, size_of(seed), &weights).module;
        for (_, body) in module.defined() {
            for inst in body.all_insts() {
                match body.inst(inst).imm {
                    Imm::Address(..) => accesses[0] += 1,
                    Imm::HostAddress(memory, _) => accesses[memory.as_u32() as usize] += 1,
                    _ => {}
                }
            }
        }
    }
    assert!(accesses.iter().all(|count| *count > 500), "{accesses:?}");
}

/// Calls in marked blocks go through stubs of native code.
#[test]
fn some_blocks_with_calls_are_marked_as_cold() {
    let marked = |body: &Function| {
        let is_call = |inst: &Inst| body.inst(*inst).opcode == Opcode::Call;
        let calls = body.all_insts().filter(is_call);
        calls.filter(|inst| body.is_cold(body.inst_block(*inst))).count()
    };
    let calls = |seed: u64| -> usize {
        let program = generate(seed, size_of(seed), &Weights::default());
        program.module.defined().map(|(_, body)| marked(body)).sum()
    };
    let found: usize = (0..200).map(calls).sum();
    assert!(found >= 20, "{found} calls");
}

/// Floors on which the experiments with the generator rely.
#[test]
fn programs_contain_what_passes_look_for() {
    let mut total = Statistics::default();
    for seed in 0..SEEDS {
        total.add(&generate(seed, size_of(seed), &Weights::default()).statistics());
    }
    assert_eq!(total.programs, SEEDS);
    assert_program_shares(&total);
    assert_loop_shares(&total);
    // OSR points and assumptions are put into versions, not into generated programs.
    let is_of_versions =
        |opcode: Opcode| matches!(opcode, Opcode::OsrTest | Opcode::OsrExit | Opcode::Assume);
    // Operations that tell overflow have tests of their own, and references weights of their own.
    let tells_overflow = |opcode: Opcode| {
        matches!(opcode, Opcode::SaddOverflows | Opcode::SsubOverflows | Opcode::SmulOverflows)
    };
    let is_general = |opcode: &Opcode| {
        let has_weights = OF_REFERENCES.contains(opcode) || DECLARED.contains(opcode);
        !is_of_versions(*opcode) && !tells_overflow(*opcode) && !has_weights
    };
    for opcode in Opcode::ALL.iter().filter(|opcode| is_general(opcode)) {
        let count = total.opcodes.get(opcode).copied().unwrap_or(0);
        assert!(count >= 20, "{} occurs {count} times", opcode.name());
    }
    for ty in Type::NUMBERS {
        let share = 100 * total.types[&ty] / total.types.values().sum::<u64>();
        assert!(share >= 3, "{ty}: {share} %");
    }
    let mean_size = total.instructions / total.programs;
    assert!((60..=200).contains(&mean_size), "{mean_size} instructions a program");
    assert!(total.critical_edges > total.programs, "{} critical edges", total.critical_edges);
}

fn assert_program_shares(total: &Statistics) {
    let least = |feature: Feature| match feature {
        Feature::Loop | Feature::Load | Feature::Store | Feature::EdgeConstant => 50,
        // Every program begins with a loop, which leaves less of its size for other regions.
        Feature::Irreducible => 2,
        _ => 5,
    };
    // Facts have tests of their own, and weight zero in other programs.
    for feature in Feature::ALL.iter().filter(|f| Weights::default().of(**f) > 0) {
        let share = 100 * total.programs_with[feature] / total.programs;
        assert!(share >= least(*feature), "{feature}: in {share} % of programs");
        assert!(total.planted.of(*feature) >= total.programs_with[feature]);
    }
}

fn assert_loop_shares(total: &Statistics) {
    let share = |count: u64| 100 * count / total.loops;
    assert!(total.loops > total.programs, "{} loops", total.loops);
    // About one loop in ten is nested. Each new opcode draws other programs, and the count of one
    // draw is off by a thirtieth: 732 of 7,327 with `bswap`, one less than a tenth.
    assert!(share(total.nested_loops) >= 9, "nested: {} %", share(total.nested_loops));
    assert!(
        share(total.multi_entry_loops) >= 1,
        "with several entries: {} %",
        share(total.multi_entry_loops)
    );
    assert!(
        share(total.multi_exit_loops) >= 10,
        "with several exits: {} %",
        share(total.multi_exit_loops)
    );
    assert!(
        share(total.multi_latch_loops) >= 10,
        "with several latches: {} %",
        share(total.multi_latch_loops)
    );
}

/// The calls and returns of the bodies of a program.
#[derive(Debug, Default)]
struct TreeShape {
    /// The longest chain of calls, `main` counted. Calls back are not followed.
    levels: usize,
    /// A function that another function calls twice.
    twice: bool,
    /// A function with several returns, and with two results of one type.
    permutable: bool,
    /// Whether a function calls itself, and whether two functions call each other.
    recursive: [bool; 2],
}

impl TreeShape {
    fn of(module: &Module) -> TreeShape {
        let mut calls: BTreeMap<Func, Vec<Func>> = BTreeMap::new();
        let mut shape = TreeShape::default();
        for (func, f) in module.defined() {
            let list = calls.entry(func).or_default();
            let callees = f.all_insts().filter_map(|inst| match f.inst(inst).imm {
                Imm::Func(callee) => Some(callee),
                _ => None,
            });
            list.extend(callees.filter(|callee| module.body(*callee).is_some()));
            let returns = f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Return).count();
            let results = &f.signature().results;
            let alike = results.iter().skip(1).any(|ty| results.first() == Some(ty));
            shape.permutable |= returns > 2 && alike;
        }
        for (func, list) in &calls {
            shape.twice |= list.iter().any(|one| list.iter().filter(|l| *l == one).count() > 1);
            shape.recursive[0] |= list.contains(func);
            let calls_back = |one: &Func| one != func && calls[one].contains(func);
            shape.recursive[1] |= list.iter().any(calls_back);
        }
        let mut levels: BTreeMap<Func, usize> = BTreeMap::new();
        for (func, list) in &calls {
            let below = list.iter().filter(|l| *l < func).map(|l| levels[l]).max();
            levels.insert(*func, 1 + below.unwrap_or(0));
        }
        shape.levels = levels.values().copied().max().unwrap_or(0);
        shape
    }
}

/// The shares of 200 programs, in percent.
fn tree_shares(weights: &Weights) -> BTreeMap<&'static str, u64> {
    const PROGRAMS: u64 = 200;
    let mut shares = BTreeMap::new();
    for seed in 0..PROGRAMS {
        let program = generate(seed, 60, weights);
        let findings = verify_module(&program.module);
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
        let shape = TreeShape::of(&program.module);
        let (mut in_callee, mut host_calls, mut trapped, mut kinds) = (false, false, 0, 0);
        for arguments in &program.arguments {
            let limits = Limits { fuel: program.steps, ..Limits::default() };
            let mut machine =
                Machine::new(&program.module, limits).expect("the module can be instantiated");
            let mut host = CountingHost::default();
            let outcome = machine.invoke(program.main, arguments, &mut host, &mut NoObserver);
            assert!(!matches!(outcome, Outcome::OutOfFuel(_)), "seed {seed}: {outcome}");
            trapped += u64::from(outcome.trap().is_some());
            kinds |= match outcome.trap() {
                Some(TrapKind::DivisionByZero) => 1,
                Some(TrapKind::MemoryOutOfBounds) => 2,
                Some(TrapKind::Unreachable | TrapKind::User(_)) => 4,
                _ => 0,
            };
            in_callee |= outcome.trap().is_some()
                && outcome.site().is_some_and(|site| &*site.function != MAIN);
            host_calls |= host.calls() > 0;
        }
        let mut count = |name, holds: bool| *shares.entry(name).or_default() += u64::from(holds);
        count("3 levels", shape.levels >= 3);
        count("4 levels", shape.levels >= 4);
        count("called twice", shape.twice);
        count("returns that can be permuted", shape.permutable);
        count("calls itself", shape.recursive[0]);
        count("call each other", shape.recursive[1]);
        count("host called", host_calls);
        count("traps in a callee", in_callee);
        count("trapped mostly", trapped * 2 > program.arguments.len() as u64);
        count("division by zero", kinds & 1 > 0);
        count("out of bounds", kinds & 2 > 0);
        count("trap instruction", kinds & 4 > 0);
    }
    shares.values_mut().for_each(|share| *share = 100 * *share / PROGRAMS);
    shares
}

/// Inlining meets few trees in other programs: [`Weights::and_trees`] adds them.
#[test]
fn call_trees_are_planted_on_demand() {
    let shares = tree_shares(&Weights::default().and_trees());
    let floors = [
        ("3 levels", 75),
        ("4 levels", 40),
        ("called twice", 80),
        ("returns that can be permuted", 35),
        ("calls itself", 35),
        ("call each other", 12),
        ("host called", 45),
        ("traps in a callee", 15),
        ("division by zero", 8),
        ("out of bounds", 8),
        ("trap instruction", 2),
    ];
    for (name, floor) in floors {
        assert!(shares[name] >= floor, "{name}: {shares:#?}");
    }
    assert!(shares["trapped mostly"] <= 35, "{shares:#?}");
    let others = tree_shares(&Weights::default());
    assert!(others["3 levels"] < 30 && others["returns that can be permuted"] < 5, "{others:#?}");
}

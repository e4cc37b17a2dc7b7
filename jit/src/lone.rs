//! Continuations into versions that are not compiled as a whole: only the code behind the landing
//! point exists.

use crate::calls::ContextCode;
use crate::code::MachineCode;
use crate::direct::BoundFunctions;
use crate::engine::{Engine, Request};
use crate::error::ContinueError;
use crate::lower::CodeKind;
use crate::observe::PieceKind;
use crate::version::{Beginning, Continuation, InsertedPoints, Version, listed};
use check::CheckedEntry;
use ir::{Func, Function, Module};
use std::sync::{Arc, Mutex};
use transition::VersionKey;
use transition::copy::InlinedSites;

impl Engine {
    /// As [`Engine::continuation`], into versions that are not compiled: the code behind the
    /// landings of the entry is all that exists of them ([`resume::continuation()`]). A function
    /// that is called once needs no more. `versions` are the versions of the landings, the
    /// innermost first: for most entries, the target version alone. No calls run them, and they
    /// have no points. `source` is a version of `func`, which traps and profiles name. A version
    /// does not know its function, so of this only the results of its signature are checked.
    ///
    /// # Errors
    /// [`ContinueError::NotBuilt`] if the entry does not lead from `source` to these versions, and
    /// [`ContinueError::Compile`], for example if `func` has other results.
    pub fn lone_continuation(
        &self,
        module: &Arc<Module>,
        func: Func,
        source: &Function,
        entry: CheckedEntry<'_>,
        versions: &[&Function],
    ) -> Result<Arc<Continuation>, ContinueError> {
        let at = entry.point();
        let name = format!("{}.from.{}", source.name(), at.inst());
        let not_built = |error: resume::ContinuationError| ContinueError::NotBuilt {
            function: source.name().to_owned(),
            what: error.to_string(),
        };
        let made = resume::continuation(&name, source, versions, entry).map_err(not_built)?;
        let function = made.function;
        // Code behind several landings is of several functions, as inlined code is.
        let (target, origins, sites) = match versions {
            [target] => (target, Some(listed(&made.origins, function.inst_bound())), None),
            _ => {
                let funcs: Vec<Func> = entry.landings(func).map(|landing| landing.func).collect();
                let site = |(inst, (landing, of))| (inst, (funcs[landing], of));
                let sites: InlinedSites = made.copied.into_iter().map(site).collect();
                (&&function, None, Some(Arc::new(sites)))
            }
        };
        let request = Request {
            module,
            func,
            function: &function,
            kind: CodeKind::Resumed,
            piece: PieceKind::Continuation { at, target: VersionKey::of(target) },
            cells: Arc::from([]),
            counters: None,
            origins,
            sites: sites.clone(),
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
        };
        let code = Arc::new(self.compile(request).map_err(ContinueError::Compile)?);
        let instructions = function.inst_count();
        let target = Function::clone(target);
        let target = self.without_code(module, func, target, Arc::clone(&code), sites);
        let (source, requires) = (VersionKey::of(source), entry.entry().requires.clone());
        let keeps = !entry.entry().kept.is_empty();
        Ok(Arc::new(Continuation { code, source, at, requires, keeps, target, instructions }))
    }

    /// A version that stands for the code of a continuation alone.
    fn without_code(
        &self,
        module: &Arc<Module>,
        func: Func,
        function: Function,
        code: Arc<MachineCode>,
        sites: Option<Arc<InlinedSites>>,
    ) -> Arc<Version> {
        Arc::new(Version {
            func,
            key: VersionKey::of(&function),
            engine: self.clone(),
            module: Arc::clone(module),
            function: Arc::new(function),
            code,
            points: Vec::new(),
            cells: Arc::from([]),
            counters: None,
            sites,
            bound: BoundFunctions::default(),
            contexts: ContextCode::default(),
            inserted: InsertedPoints::Nowhere,
            stubs: None,
            machine: Mutex::default(),
            begins: Beginning::Nowhere,
        })
    }
}

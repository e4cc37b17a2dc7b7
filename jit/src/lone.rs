//! Continuations into versions that are not compiled as a whole: only the code behind the landing
//! point exists.

use crate::code::MachineCode;
use crate::engine::{Engine, Request};
use crate::error::ContinueError;
use crate::lower::CodeKind;
use crate::observe::PieceKind;
use crate::version::{Continuation, Version, listed};
use check::{CheckedEntry, CheckedFrameEntry};
use ir::{Func, Function, Inst, Module};
use std::sync::{Arc, Mutex};
use transition::VersionKey;
use transition::copy::InlinedSites;

impl Engine {
    /// Like [`Engine::continuation`], into a version of `func` that is not compiled as a whole:
    /// only the code behind the landing point exists. A function that is called once needs no more.
    /// Calls cannot run the version, and it has no points.
    ///
    /// # Errors
    /// As [`Engine::continuation`].
    pub fn lone_continuation(
        &self,
        module: &Arc<Module>,
        func: Func,
        (source, target): (&Function, &Function),
        entry: CheckedEntry<'_>,
    ) -> Result<Arc<Continuation>, ContinueError> {
        let function = || source.name().to_owned();
        if entry.source() != VersionKey::of(source) {
            return Err(ContinueError::OtherSource { function: function() });
        }
        if entry.target() != VersionKey::of(target) {
            return Err(ContinueError::OtherTarget { function: function() });
        }
        let at = entry.point();
        let name = format!("{}.from.{}", source.name(), at.inst());
        let made = resume::continuation(&name, source, target, entry).map_err(|error| {
            ContinueError::NotBuilt { function: function(), what: error.to_string() }
        })?;
        let instructions = made.function.inst_count();
        let request = Request {
            module,
            func,
            function: &made.function,
            kind: CodeKind::Resumed,
            piece: PieceKind::Continuation { at, target: VersionKey::of(target) },
            cells: Arc::from([]),
            counters: None,
            origins: Some(listed(&made.origins, made.function.inst_bound())),
            sites: None,
        };
        let code = Arc::new(self.compile(request).map_err(ContinueError::Compile)?);
        let target = self.without_code(module, (func, target.clone()), Arc::clone(&code), None);
        let (source, requires) = (VersionKey::of(source), entry.entry().requires.clone());
        let keeps = !entry.entry().kept.is_empty();
        Ok(Arc::new(Continuation { code, source, at, requires, keeps, target, instructions }))
    }

    /// A version that stands for the code of a continuation alone.
    fn without_code(
        &self,
        module: &Arc<Module>,
        (func, function): (Func, Function),
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
            instrumented: None,
            stubs: None,
            machine: Mutex::default(),
            callable: false,
        })
    }

    /// Compiles an entry into several frames: the compensation code and the code behind all of
    /// them, as one piece ([`resume::frame_continuation`]). `versions` are the target versions of
    /// the frames, the innermost first. Calls cannot run these versions, and they have no points.
    /// Cost: as [`Engine::continuation`].
    ///
    /// # Errors
    /// [`ContinueError::NotBuilt`] if the entry does not lead from `source`, a version of `func`,
    /// to these versions, and [`ContinueError::Compile`].
    pub fn frame_continuation(
        &self,
        module: &Arc<Module>,
        (func, source): (Func, &Function),
        entry: CheckedFrameEntry<'_>,
        versions: &[&Function],
    ) -> Result<Arc<Continuation>, ContinueError> {
        let at = entry.point();
        let name = format!("{}.from.{}", source.name(), at.inst());
        let not_built = |error: resume::ContinuationError| ContinueError::NotBuilt {
            function: source.name().to_owned(),
            what: error.to_string(),
        };
        let made = resume::frame_continuation(&name, source, versions, entry).map_err(not_built)?;
        let frames = &entry.entry().frames;
        let site =
            |(inst, (frame, of)): (&Inst, &(usize, Inst))| (*inst, (frames[*frame].func, *of));
        let sites: Arc<InlinedSites> = Arc::new(made.origins.iter().map(site).collect());
        let function = made.function;
        let request = Request {
            module,
            func,
            function: &function,
            kind: CodeKind::Resumed,
            piece: PieceKind::Continuation { at, target: VersionKey::of(&function) },
            cells: Arc::from([]),
            counters: None,
            origins: None,
            sites: Some(Arc::clone(&sites)),
        };
        let code = Arc::new(self.compile(request).map_err(ContinueError::Compile)?);
        let instructions = function.inst_count();
        let target = self.without_code(module, (func, function), Arc::clone(&code), Some(sites));
        let (source, requires) = (VersionKey::of(source), entry.entry().requires.clone());
        let keeps = !entry.entry().kept.is_empty();
        Ok(Arc::new(Continuation { code, source, at, requires, keeps, target, instructions }))
    }
}

//! The code of one version of a function, decoded at once or at its first use.

use super::decode::decode;
use super::decoded::{Decoded, narrow};
use ir::entity::{Func, Inst};
use ir::function::Function;
use ir::module::Module;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use transition::VersionKey;

/// One version of a function, pre-decoded or to be decoded at its first use.
#[derive(Debug)]
pub struct Code {
    key: VersionKey,
    pub(super) params: u32,
    /// The module and the function that `decoded` will be made of, for base versions.
    source: Mutex<Option<(Arc<DecodeSource>, Func)>>,
    decoded: OnceLock<Decoded>,
}

/// The module that supplies code at its first use. All code of a program shares it with the code of
/// larger programs that the program is extended to. So earlier modules can be freed
/// (`earlier_modules_are_freed`), without a walk over the code.
#[derive(Debug)]
pub(super) struct DecodeSource(Mutex<Arc<Module>>);

impl DecodeSource {
    pub(super) fn new(module: &Arc<Module>) -> Arc<DecodeSource> {
        Arc::new(DecodeSource(Mutex::new(Arc::clone(module))))
    }

    fn module(&self) -> MutexGuard<'_, Arc<Module>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves on from a module to a larger one that begins like it. Returns false, and stays, if the
    /// source has moved on to a third one: the new functions of that are others.
    pub(super) fn move_on(&self, from: &Arc<Module>, to: &Arc<Module>) -> bool {
        let mut module = self.module();
        let moves = Arc::ptr_eq(&module, from);
        if moves {
            *module = Arc::clone(to);
        }
        moves
    }
}

impl Code {
    /// Pre-decodes one version of a function of `module`. The function must be verified.
    ///
    /// Cost: linear in the function and in its id bounds. Where loops pass arguments, the cost adds
    /// the blocks in which these arguments are live.
    ///
    /// # Panics
    /// When the verifier would reject the function for this module, or when the function has 2^32
    /// operands or more.
    pub fn new(module: &Module, function: &Function) -> Code {
        let decoded = OnceLock::from(decode(module, function));
        Code { decoded, ..Code::of(function) }
    }

    /// The base version of a function of a verified module, decoded at its first use: most runs use
    /// a part of the functions of a large module. `source` is one of this module. `None` if the
    /// function has no body. Cost: constant, plus [`Code::new`] at the first use.
    ///
    /// # Panics
    /// At the first use, as [`Code::new`].
    pub(super) fn later(source: &Arc<DecodeSource>, module: &Module, func: Func) -> Option<Code> {
        let source = Mutex::new(Some((Arc::clone(source), func)));
        Some(Code { source, ..Code::of(module.body(func)?) })
    }

    fn of(function: &Function) -> Code {
        let params = narrow(function.arguments().len());
        let (key, decoded) = (VersionKey::of(function), OnceLock::new());
        Code { key, params, source: Mutex::new(None), decoded }
    }

    /// Whether the function is decoded: code of [`crate::Program::on_demand`] is at its first use.
    pub fn is_decoded(&self) -> bool {
        self.decoded.get().is_some()
    }

    /// The decoded form.
    #[inline]
    pub(super) fn decoded(&self) -> &Decoded {
        match self.decoded.get() {
            Some(decoded) => decoded,
            None => self.decode(),
        }
    }

    #[cold]
    fn decode(&self) -> &Decoded {
        self.decoded.get_or_init(|| {
            let (source, func) = self.source().take().expect("code has a source or is decoded");
            let module = Arc::clone(&source.module());
            let body = module.body(func).expect("the source has a body");
            decode(&module, body)
        })
    }

    fn source(&self) -> MutexGuard<'_, Option<(Arc<DecodeSource>, Func)>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets code that is still to be decoded be made of a later module, which has the same
    /// function, so that the earlier module can be freed.
    pub(super) fn settle(&self, later: &Arc<DecodeSource>) {
        if let Some((source, _)) = &mut *self.source() {
            *source = Arc::clone(later);
        }
    }

    /// The key by which mappings name this version as their source or target.
    pub fn key(&self) -> VersionKey {
        self.key
    }

    /// Sets or clears the mark of every instruction of `insts`. Instructions the version lacks are
    /// skipped.
    pub(super) fn set_marks(&mut self, insts: impl IntoIterator<Item = Inst>, marked: bool) {
        self.decoded();
        self.decoded.get_mut().expect("it is decoded").set_marks(insts, marked);
    }
}

impl Clone for Code {
    fn clone(&self) -> Code {
        // The source goes when the code is decoded, so it is read first.
        let source = Mutex::new(self.source().clone());
        let Code { key, params, ref decoded, .. } = *self;
        Code { key, params, source, decoded: decoded.clone() }
    }
}

impl Deref for Code {
    type Target = Decoded;

    #[inline]
    fn deref(&self) -> &Decoded {
        self.decoded()
    }
}

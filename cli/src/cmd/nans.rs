//! The option `--nans` of commands that run native code.

use jit::Nans;

/// [`jit::Nans`], on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum NansOption {
    /// The canonical NaN wherever its bits can be seen
    Canonical,
    /// The NaN of the processor, which costs nothing
    Platform,
}

impl From<NansOption> for Nans {
    fn from(option: NansOption) -> Nans {
        match option {
            NansOption::Canonical => Nans::Canonical,
            NansOption::Platform => Nans::Platform,
        }
    }
}

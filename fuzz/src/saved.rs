//! A case as data: what a file of a finding holds, and what a child process reads.

use super::case::{Case, World};
use super::options::CampaignOptions;
use ir::text::{parse_module, print_module};
use osr::Level;
use passes::registry::{PASSES, StaticPass};
use serde::{Deserialize, Serialize};

/// A case as data: a [`Case`] without the settings of its campaign, for programs whose imports
/// [`verify::generate::CountingHost`] provides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SavedCase {
    /// The program in the text form.
    pub module: String,
    /// The name of the function that each run calls.
    pub entry: String,
    /// The lists of arguments, as bits.
    pub arguments: Vec<Vec<u64>>,
    /// [`Case::fuel`].
    pub fuel: u64,
    /// The names of the passes from each version to the next.
    pub steps: Vec<Vec<String>>,
    /// [`Case::rewrites`].
    pub rewrites: u64,
    /// The name of the level of the mappings.
    pub level: String,
    /// [`Case::seed`].
    pub seed: u64,
}

impl SavedCase {
    /// A case as data. `None` for a WASI program, whose host has no such form.
    pub fn of(case: &Case) -> Option<SavedCase> {
        let World::Counting(_) = case.world else { return None };
        let names = |passes: &Vec<StaticPass>| passes.iter().map(|p| p.name().to_owned()).collect();
        Some(SavedCase {
            module: print_module(&case.module).to_string(),
            entry: case.module.funcs[case.entry].name.clone(),
            arguments: case.arguments.clone(),
            fuel: case.fuel,
            steps: case.steps.iter().map(names).collect(),
            rewrites: case.rewrites,
            level: case.level.name().to_owned(),
            seed: case.seed,
        })
    }

    /// The case under the settings of a campaign. The text form makes ids dense, so they may differ
    /// from those of the saved case. `None` if the data is no case: the module is wrong, or it has
    /// no such function, or there is no such pass or level.
    pub fn case(&self, options: &CampaignOptions) -> Option<Case> {
        let module = parse_module(&self.module).ok()?;
        let entry = module.func_named(&self.entry).filter(|func| module.body(*func).is_some())?;
        let signature = module.signature(entry);
        if self.arguments.iter().any(|list| list.len() != signature.params.len()) {
            return None;
        }
        let named = |name: &String| PASSES.iter().copied().find(|pass| pass.name() == name);
        let steps = self
            .steps
            .iter()
            .map(|step| step.iter().map(named).collect())
            .collect::<Option<Vec<_>>>()?;
        let level = Level::from_name(&self.level)?;
        let case = options.case(self.seed, module, entry, self.arguments.clone(), self.fuel);
        Some(Case { steps, rewrites: self.rewrites, level, ..case })
    }
}

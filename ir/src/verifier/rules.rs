//! The rules, each with the id that findings, tests and manuals use.

use std::fmt;

macro_rules! rules {
    ($($variant:ident $id:literal $meaning:literal;)+) => {
        /// A rule of well-formedness. Ids are stable: a rule may be retired, never renamed.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rule { $(#[doc = $meaning] $variant,)+ }

        impl Rule {
            /// Every rule, in the order of the manual.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)+];

            /// The id, for example `SSA-DOM-1`.
            pub const fn id(self) -> &'static str {
                match self { $(Rule::$variant => $id,)+ }
            }

            /// The requirement of the rule, in one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Rule::$variant => $meaning,)+ }
            }
        }
    };
}

rules! {
    ModName1 "MOD-NAME-1" "the names of functions are unique, and those of globals, memories and tables";
    ModName2 "MOD-NAME-2" "a body has the name of its declaration";
    ModSig1 "MOD-SIG-1" "the signature of a function is declared";
    ModSig2 "MOD-SIG-2" "a body has the signature of its declaration";
    ModSig3 "MOD-SIG-3" "each signature is declared once";
    ModBody1 "MOD-BODY-1" "a function that is not imported has a body, or awaits one";
    ModBody2 "MOD-BODY-2" "an imported function has no body";
    ModBody3 "MOD-BODY-3" "a body belongs to a declared function";
    ModEffect1 "MOD-EFFECT-1" "an imported function alone has a declared effect, except `allocates`; one that is `pure` or `reads` returns one number, a `pure` one takes no `ref`, and one that `allocates` is (i32, i64, ...) -> (ref)";
    ModGlobal1 "MOD-GLOBAL-1" "the initial bits of a global fit its type; a reference to a function is to a declared one";
    ModInit1 "MOD-INIT-1" "an expression for a global, the place of a segment or an entry reads immutable globals of its type that are declared before, and leaves one result";
    ModMemory1 "MOD-MEM-1" "a memory has at most 65536 pages, at the start at most its maximum";
    ModHost1 "MOD-HOST-1" "a host memory is neither imported nor exported, and has no maximum; without an address it has no pages";
    ModHost2 "MOD-HOST-2" "the pages of a host memory begin at a multiple of 65536 and end at most at 2^64; no two host memories share a byte";
    ModTable1 "MOD-TABLE-1" "a table has at most 10000000 entries at the start, and at most its maximum";
    ModTable2 "MOD-TABLE-2" "a table holds references";
    ModTable3 "MOD-TABLE-3" "no code writes a fixed table, and it is neither imported nor exported";
    ModData1 "MOD-DATA-1" "a data segment writes a declared memory";
    ModData2 "MOD-DATA-2" "a data segment lies in the initial size of its memory, unless the memory is imported";
    ModData3 "MOD-DATA-3" "no data segment writes a host memory";
    ModElem1 "MOD-ELEM-1" "an element segment writes a declared table";
    ModElem2 "MOD-ELEM-2" "an element segment lies in the initial size of its table, unless the table is imported";
    ModElem3 "MOD-ELEM-3" "an element segment holds declared functions";
    ModElem4 "MOD-ELEM-4" "an element segment holds references, of the type of the table it writes";
    ModExport1 "MOD-EXPORT-1" "an export refers to a declared entity";
    ModExport2 "MOD-EXPORT-2" "the names of exports are unique";
    ModStart1 "MOD-START-1" "the start function is declared";
    ModStart2 "MOD-START-2" "the start function takes and returns nothing";
    CfgLayout1 "CFG-LAYOUT-1" "the layout has the entry block, and every block once";
    CfgList1 "CFG-LIST-1" "every instruction is on the list of one block, linked in both directions, with ascending order numbers";
    CfgTerm1 "CFG-TERM-1" "a block ends in a terminator";
    CfgTerm2 "CFG-TERM-2" "a terminator is the last instruction of its block";
    CfgTarget1 "CFG-TARGET-1" "a target is a block of the function";
    CfgTarget2 "CFG-TARGET-2" "an instruction has as many targets as its opcode requires";
    CfgArgs1 "CFG-ARGS-1" "a target has one argument for each parameter of its block";
    CfgArgs2 "CFG-ARGS-2" "an argument of a target has the type of the parameter";
    CfgEdge1 "CFG-EDGE-1" "the list of predecessors of a block holds exactly the edges that lead to it";
    CfgEntry1 "CFG-ENTRY-1" "no edge leads to the entry block";
    CfgEntry2 "CFG-ENTRY-2" "the parameters of the entry block have the types in the signature";
    SsaOne1 "SSA-ONE-1" "a value has one definition, the recorded one";
    SsaOne2 "SSA-ONE-2" "every recorded value has a definition";
    SsaDef1 "SSA-DEF-1" "an operand is a value of the function";
    SsaDom1 "SSA-DOM-1" "in reachable code a use is dominated by its definition";
    UseList1 "USE-LIST-1" "the users of a value are exactly the instructions that use it, once for each operand";
    TypeControl1 "TYPE-CTRL-1" "the opcode allows the controlling type";
    TypeOperand1 "TYPE-OPERAND-1" "an instruction has as many operands as its type rule requires";
    TypeOperand2 "TYPE-OPERAND-2" "an operand has the type that the type rule requires";
    TypeResult1 "TYPE-RESULT-1" "an instruction has as many results as its type rule requires";
    TypeResult2 "TYPE-RESULT-2" "a result has the type that the type rule requires";
    Imm1 "IMM-1" "an immediate is of the kind that its opcode requires";
    Imm2 "IMM-2" "the bits of a constant fit its type; an `externref` is null";
    Imm3 "IMM-3" "an immediate refers to a declared entity";
    Imm4 "IMM-4" "a global that is set is mutable";
    Imm5 "IMM-5" "the controlling type is that of the global or table";
    Imm6 "IMM-6" "a table holds the type of the table or segment copied from";
    Imm7 "IMM-7" "a load or store names a host memory exactly if it has a 64-bit address";
    Imm8 "IMM-8" "no operation but loads and stores is on a host memory";
    Imm9 "IMM-9" "the declared effect of a function allows the instruction that calls it";
    Name1 "NAME-1" "a name is given to a value or block of the function";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

//! Parsing of lines into items.

use super::declarations::{
    read_data, read_effect, read_elem, read_export, read_global, read_import, read_later,
    read_memory, read_table,
};
use super::error::{Faults, SourceText, TextFault};
use super::items::{
    BlockItem, File, FuncItem, ImmItem, InstItem, Item, Param, SourceName, TargetItem,
};
use super::lex::{Cursor, Token};
use super::read::{read_bits, read_list, read_results, read_signature, read_type, read_unsigned};
use crate::effect::DeclaredEffect;
use crate::opcode::{Opcode, Shape};
use crate::trap::TrapKind;
use crate::types::{Type, TypeList};
use std::collections::HashMap;

/// Reads every line of a text. Stops early when the number of errors reaches the maximum.
pub(super) fn parse_file<'a>(source: &SourceText<'a>, faults: &mut Faults) -> File<'a> {
    let mut parser = Parser::new();
    if source.len() > u32::MAX as usize {
        // Ids and line numbers have 32 bits.
        faults.push(TextFault::new(0, "the text is longer than 4 GiB"));
        return parser.file;
    }
    for (start, line) in source.lines() {
        if faults.is_full() {
            break;
        }
        if let Err(fault) = parser.line(Cursor::new(line, start)) {
            parser.lost_line(line);
            faults.push(fault);
        }
    }
    if let Err(fault) = parser.finish_open_function() {
        faults.push(fault);
    }
    parser.file
}

struct Parser<'a> {
    file: File<'a>,
    /// The function whose body is open.
    open: Option<FuncItem<'a>>,
    /// Whether the first line of the open function could not be read.
    headless: bool,
    opcodes: HashMap<&'static str, Opcode>,
}

impl<'a> Parser<'a> {
    fn new() -> Parser<'a> {
        let opcodes = Opcode::ALL.iter().map(|op| (op.name(), *op)).collect();
        Parser { file: File::default(), open: None, headless: false, opcodes }
    }

    /// Reads one line.
    fn line(&mut self, mut cursor: Cursor<'a>) -> Result<(), TextFault> {
        if *cursor.peek()? == Token::End {
            return Ok(());
        }
        if self.open.is_none() {
            return self.item(&mut cursor);
        }
        if starts_function(&cursor) {
            // The closing `}` is missing. The error is at the function that lacks it; the parser
            // then reads on.
            let unclosed = self.finish_open_function();
            self.item(&mut cursor)?;
            return unclosed;
        }
        self.body_line(&mut cursor)
    }

    /// Records an unreadable line. The builder then reports no errors for names that the line may
    /// define.
    fn lost_line(&mut self, line: &'a str) {
        if let Some(function) = &mut self.open {
            function.lost_lines = true;
            return;
        }
        self.file.lost_items = true;
        if line.trim_start().starts_with("func") && line.trim_end().ends_with('{') {
            // Only the first line of the function is bad. The parser still reads the body, to
            // report errors in it.
            let (params, results, blocks) = (Vec::new(), TypeList::new(), Vec::new());
            let name = SourceName { text: "".into(), at: 0 };
            let effect = DeclaredEffect::Any;
            let item = FuncItem { name, params, results, effect, blocks, lost_lines: true };
            self.open = Some(item);
            self.headless = true;
        }
    }

    fn finish_open_function(&mut self) -> Result<(), TextFault> {
        match self.open.take() {
            Some(function) if !std::mem::take(&mut self.headless) => {
                self.file.lost_items = true;
                Err(TextFault::new(function.name.at, "this function is not closed by `}`"))
            }
            _ => Ok(()),
        }
    }

    /// Reads a line outside functions.
    fn item(&mut self, cursor: &mut Cursor<'a>) -> Result<(), TextFault> {
        let keyword = match cursor.peek()? {
            Token::Word(word) => *word,
            _ => return expected_item(cursor),
        };
        let read = match keyword {
            "memory" => read_memory,
            "global" => read_global,
            "table" => read_table,
            "data" => read_data,
            "elem" => read_elem,
            "import" => read_import,
            "later" => read_later,
            "export" => read_export,
            "start" => read_start,
            "func" => {
                cursor.next()?;
                self.open = Some(read_func(cursor)?);
                return Ok(());
            }
            _ => return expected_item(cursor),
        };
        cursor.next()?;
        let item = read(cursor)?;
        cursor.end()?;
        self.file.items.push(item);
        Ok(())
    }

    /// Reads a line of a function's body.
    fn body_line(&mut self, cursor: &mut Cursor<'a>) -> Result<(), TextFault> {
        let function = self.open.as_mut().expect("a function is open");
        if cursor.eat('}')? {
            cursor.end()?;
            let done = self.open.take().expect("a function is open");
            if !std::mem::take(&mut self.headless) {
                self.file.items.push(Item::Func(done));
            }
            return Ok(());
        }
        if starts_label(cursor) {
            function.blocks.push(read_label(cursor, function.blocks.is_empty())?);
            return Ok(());
        }
        match function.blocks.last_mut() {
            Some(block) => block.insts.push(read_inst(cursor, &self.opcodes)?),
            // The label was present, but could not be read.
            None if function.lost_lines => drop(read_inst(cursor, &self.opcodes)?),
            None => return cursor.expected("the label of the first block (`name:`)"),
        }
        Ok(())
    }
}

fn expected_item<T>(cursor: &mut Cursor<'_>) -> Result<T, TextFault> {
    cursor.expected(
        "`memory`, `global`, `table`, `data`, `elem`, `import`, `later`, `export`, `start` or `func`",
    )
}

/// Whether the line begins with `func @`. No line of a body does.
fn starts_function(cursor: &Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    ahead.next().is_ok_and(|t| t == Token::Word("func"))
        && matches!(ahead.next(), Ok(Token::Entity(_)))
}

/// Whether the line is a label. No instruction has `(`, `:` or `cold:` after its first word.
fn starts_label(cursor: &Cursor<'_>) -> bool {
    let mut ahead = cursor.clone();
    matches!(ahead.next(), Ok(Token::Word(_) | Token::Quoted(_)))
        && match ahead.next() {
            Ok(Token::Punct('(' | ':')) => true,
            Ok(Token::Word("cold")) => matches!(ahead.next(), Ok(Token::Punct(':'))),
            _ => false,
        }
}

fn read_start<'a>(cursor: &mut Cursor<'a>) -> Result<Item<'a>, TextFault> {
    cursor.entity("a function").map(|func| Item::Start { func })
}

fn read_func<'a>(cursor: &mut Cursor<'a>) -> Result<FuncItem<'a>, TextFault> {
    let name = cursor.entity("a function")?;
    cursor.punct('(')?;
    let params = read_list(cursor, ')', read_param)?;
    let results = read_results(cursor)?;
    let effect = read_effect(cursor)?;
    cursor.punct('{')?;
    cursor.end()?;
    Ok(FuncItem { name, params, results, effect, blocks: Vec::new(), lost_lines: false })
}

/// Reads `name:` or `name(%a: i32, %b: i64):`, with `cold` in front of the colon perhaps.
fn read_label<'a>(cursor: &mut Cursor<'a>, is_entry: bool) -> Result<BlockItem<'a>, TextFault> {
    let name = cursor.block()?;
    let at = cursor.offset();
    let params = if cursor.eat('(')? { read_list(cursor, ')', read_param)? } else { Vec::new() };
    if is_entry && !params.is_empty() {
        let message =
            "the parameters of the first block are those of the function: write them there only";
        return Err(TextFault::new(at, message));
    }
    let is_cold = !is_entry && cursor.eat_word("cold")?;
    cursor.punct(':')?;
    cursor.end()?;
    Ok(BlockItem { name, params, is_cold, insts: Vec::new() })
}

fn read_inst<'a>(
    cursor: &mut Cursor<'a>,
    opcodes: &HashMap<&str, Opcode>,
) -> Result<InstItem<'a>, TextFault> {
    let at = cursor.offset();
    let mut results = Vec::new();
    if matches!(cursor.peek()?, Token::Value(_)) {
        results.push(cursor.value()?);
        while cursor.eat(',')? {
            results.push(cursor.value()?);
        }
        cursor.punct('=')?;
    }
    let (opcode, ty) = read_mnemonic(cursor, opcodes)?;
    let (imm, args, targets) = (ImmItem::None, Vec::new(), Vec::new());
    let mut inst = InstItem { at, results, opcode, ty, imm, args, targets };
    read_rest(cursor, &mut inst)?;
    cursor.end()?;
    Ok(inst)
}

/// Reads an opcode and its type suffix.
fn read_mnemonic(
    cursor: &mut Cursor<'_>,
    opcodes: &HashMap<&str, Opcode>,
) -> Result<(Opcode, Type), TextFault> {
    let at = cursor.offset();
    let word = match cursor.peek()? {
        Token::Word(word) => *word,
        _ => return cursor.expected("an instruction"),
    };
    let (name, suffix) = match word.split_once('.') {
        Some((name, suffix)) => (name, Some(suffix)),
        None => (word, None),
    };
    let Some(&opcode) = opcodes.get(name) else {
        return cursor.expected("an instruction, a label or `}`");
    };
    let ty = match (suffix, opcode.has_type_suffix()) {
        (None, false) => Type::I32,
        (None, true) => {
            return Err(TextFault::new(at, format!("`{name}` needs a type, as in `{name}.i32`")));
        }
        (Some(_), false) => return Err(TextFault::new(at, format!("`{name}` takes no type"))),
        (Some(suffix), true) => match Type::from_name(suffix) {
            Some(ty) => ty,
            None => {
                return cursor.expected(&format!(
                    "`{name}.` and a type: i8, i16, i32, i64, f32, f64, funcref, externref or ref"
                ));
            }
        },
    };
    cursor.next()?;
    Ok((opcode, ty))
}

/// Reads the rest of an instruction after the mnemonic, according to the shape of the opcode.
fn read_rest<'a>(cursor: &mut Cursor<'a>, inst: &mut InstItem<'a>) -> Result<(), TextFault> {
    match inst.opcode.shape() {
        Shape::Const => inst.imm = ImmItem::Bits(read_bits(cursor, inst.ty)?),
        Shape::Load(_) => inst.imm = read_address(cursor, &mut inst.args)?,
        Shape::Store(_) => {
            inst.imm = read_address(cursor, &mut inst.args)?;
            cursor.punct(',')?;
            inst.args.push(cursor.value()?);
        }
        Shape::MemorySize => inst.imm = ImmItem::Memory(cursor.entity("a memory")?),
        Shape::MemoryGrow => {
            inst.imm = ImmItem::Memory(cursor.entity("a memory")?);
            cursor.punct(',')?;
            inst.args.push(cursor.value()?);
        }
        Shape::MemoryCopy => {
            inst.imm = ImmItem::Memories(cursor.entity("a memory")?, cursor.entity("a memory")?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::MemoryFill => {
            inst.imm = ImmItem::Memory(cursor.entity("a memory")?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::MemoryInit => {
            inst.imm = ImmItem::MemoryData(cursor.entity("a memory")?, read_segment(cursor)?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::DataDrop => inst.imm = ImmItem::Data(read_segment(cursor)?),
        Shape::TableGet
        | Shape::TableSet
        | Shape::TableSize
        | Shape::TableGrow
        | Shape::TableFill => {
            inst.imm = ImmItem::Table(cursor.entity("a table")?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::TableCopy => {
            inst.imm = ImmItem::Tables(cursor.entity("a table")?, cursor.entity("a table")?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::TableInit => {
            inst.imm = ImmItem::TableElem(cursor.entity("a table")?, read_segment(cursor)?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::ElemDrop => inst.imm = ImmItem::Elem(read_segment(cursor)?),
        Shape::GlobalGet => inst.imm = ImmItem::Global(cursor.entity("a global")?),
        Shape::GlobalSet => {
            inst.imm = ImmItem::Global(cursor.entity("a global")?);
            cursor.punct(',')?;
            inst.args.push(cursor.value()?);
        }
        Shape::Call | Shape::CallValue => {
            inst.imm = ImmItem::Func(cursor.entity("a function")?);
            inst.args = read_arguments(cursor)?;
        }
        Shape::CallIndirect => read_call_indirect(cursor, inst)?,
        Shape::Jump => inst.targets.push(read_target(cursor)?),
        Shape::BrIf => {
            inst.args.push(cursor.value()?);
            for _ in 0..2 {
                cursor.punct(',')?;
                inst.targets.push(read_target(cursor)?);
            }
        }
        Shape::Switch => read_switch(cursor, inst)?,
        Shape::OsrTest => {
            inst.imm = ImmItem::Exit(read_number(cursor, "the number of an OSR point")?)
        }
        Shape::OsrExit => {
            inst.imm = ImmItem::Exit(read_number(cursor, "the number of an OSR point")?);
            inst.args = read_arguments(cursor)?;
        }
        Shape::Assume => {
            inst.args.push(cursor.value()?);
            cursor.punct(',')?;
            let bits = read_bits(cursor, inst.ty)?;
            cursor.punct(',')?;
            inst.imm = ImmItem::Assumed(bits, read_number(cursor, "the number of a reason")?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        Shape::Trap => {
            inst.imm = ImmItem::Trap(read_trap_kind(cursor)?);
            read_more_operands(cursor, &mut inst.args)?;
        }
        _ => read_operands(cursor, &mut inst.args)?,
    }
    Ok(())
}

/// Reads values up to the end of the line. The verifier checks their number.
fn read_operands<'a>(
    cursor: &mut Cursor<'a>,
    args: &mut Vec<SourceName<'a>>,
) -> Result<(), TextFault> {
    if *cursor.peek()? == Token::End {
        return Ok(());
    }
    args.push(cursor.value()?);
    while cursor.eat(',')? {
        args.push(cursor.value()?);
    }
    Ok(())
}

/// Reads values up to the end of the line, each after a comma.
fn read_more_operands<'a>(
    cursor: &mut Cursor<'a>,
    args: &mut Vec<SourceName<'a>>,
) -> Result<(), TextFault> {
    while cursor.eat(',')? {
        args.push(cursor.value()?);
    }
    Ok(())
}

/// Reads the number of a segment. The verifier checks that the segment exists.
fn read_segment(cursor: &mut Cursor<'_>) -> Result<u32, TextFault> {
    read_number(cursor, "the number of a segment")
}

/// Reads an index that has no name.
fn read_number(cursor: &mut Cursor<'_>, what: &str) -> Result<u32, TextFault> {
    // `u32::MAX` is the reserved index of `cranelift-entity`.
    let number = read_unsigned(cursor, what, u64::from(u32::MAX) - 1)?;
    Ok(u32::try_from(number).expect("the limit was given"))
}

/// Reads `@mem[%addr + 8]`.
fn read_address<'a>(
    cursor: &mut Cursor<'a>,
    args: &mut Vec<SourceName<'a>>,
) -> Result<ImmItem<'a>, TextFault> {
    let memory = cursor.entity("a memory")?;
    cursor.punct('[')?;
    args.push(cursor.value()?);
    let offset = if cursor.eat('+')? { read_unsigned(cursor, "an offset", u64::MAX)? } else { 0 };
    cursor.punct(']')?;
    Ok(ImmItem::Address(memory, offset))
}

/// Reads `@table (i32) -> i32 [%index](%a)`. The index becomes the last operand.
fn read_call_indirect<'a>(
    cursor: &mut Cursor<'a>,
    inst: &mut InstItem<'a>,
) -> Result<(), TextFault> {
    let table = cursor.entity("a table")?;
    inst.imm = ImmItem::Indirect(read_signature(cursor)?, table);
    cursor.punct('[')?;
    let index = cursor.value()?;
    cursor.punct(']')?;
    inst.args = read_arguments(cursor)?;
    inst.args.push(index);
    Ok(())
}

/// Reads `%i, [a, b(%x)], default c`. The default becomes the last target.
fn read_switch<'a>(cursor: &mut Cursor<'a>, inst: &mut InstItem<'a>) -> Result<(), TextFault> {
    inst.args.push(cursor.value()?);
    cursor.punct(',')?;
    cursor.punct('[')?;
    inst.targets = read_list(cursor, ']', read_target)?;
    cursor.punct(',')?;
    if !cursor.eat_word("default")? {
        return cursor.expected("`default` and a target");
    }
    inst.targets.push(read_target(cursor)?);
    Ok(())
}

fn read_trap_kind(cursor: &mut Cursor<'_>) -> Result<TrapKind, TextFault> {
    let kind = match cursor.peek()? {
        Token::Word(word) => TrapKind::from_name(word),
        _ => None,
    };
    let Some(kind) = kind else {
        return cursor.expected("a kind of trap, as `unreachable` or `user7`");
    };
    cursor.next()?;
    Ok(kind)
}

/// Reads `block` or `block(%a, %b)`.
fn read_target<'a>(cursor: &mut Cursor<'a>) -> Result<TargetItem<'a>, TextFault> {
    let block = cursor.block()?;
    let has_args = *cursor.peek()? == Token::Punct('(');
    let args = if has_args { read_arguments(cursor)? } else { Vec::new() };
    Ok(TargetItem { block, args })
}

/// Reads `(%a, %b)`.
fn read_arguments<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<SourceName<'a>>, TextFault> {
    cursor.punct('(')?;
    read_list(cursor, ')', Cursor::value)
}

fn read_param<'a>(cursor: &mut Cursor<'a>) -> Result<Param<'a>, TextFault> {
    let name = cursor.value()?;
    cursor.punct(':')?;
    Ok(Param { name, ty: read_type(cursor)? })
}

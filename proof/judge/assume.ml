(* Assumptions, as branches. `%y = assume %x, 7, REASON` ends its block: where `%x` has the bits,
   the run goes on in a block that begins with `%y = const 7`, and elsewhere in one that *leaves*.
   Leaving ends the run, and shows the operands. So both versions leave by the same assumption, with
   equal operands, and points behind an assumption have entries for runs in which it held.

   An assumption whose operand has the class of the constant holds in every run, and may be one of
   one version alone. Its block leads to one that binds `%y` to `%x`. Other assumptions of one
   version are outside. *)
module R = Reader
open Claims

let is_assume (i : R.inst) = i.opcode = "assume"
let has (pair : R.pair) = Array.exists (fun (s : R.side) ->
  List.exists is_assume (all_insts s.blocks)) pair.versions

(* assumed:BITS:REASON *)
let bits (i : R.inst) = match String.split_on_char ':' i.imm with
  | ["assumed"; n; _] -> "bits:" ^ n
  | _ -> raise (Outside "assume")

(* Whether a value has the class of a constant. *)
let is_constant (pair : R.pair) =
  let terms = Array.of_list (List.rev pair.terms) in
  let term_of = Hashtbl.create 64 in
  List.iter (fun (side, v, t) -> Hashtbl.replace term_of (side, v) t) pair.values;
  fun side v imm ->
    match Hashtbl.find_opt term_of (side, v) with
    | Some t when t < Array.length terms && terms.(t).R.cls < Array.length terms ->
      (match terms.(terms.(t).R.cls).R.kind with
       | "op" :: "const" :: _ :: i :: _ -> i = imm
       | _ -> false)
    | _ -> false

(* The blocks of a version, its first block first. Ids above [insts] and [blocks] are new. *)
let split_side pair is_constant side (insts, blocks) =
  let rec cut (b : R.block) done_ = function
    | [] -> [{ b with insts = List.rev done_ }]
    | (i : R.inst) :: rest when is_assume i ->
      let on = blocks + 2 * i.id and off = blocks + 2 * i.id + 1 in
      let x, y, ty = match i.args, i.results with
        | x :: _, [(y, ty)] -> x, y, ty | _ -> raise (Outside "assume") in
      let is_anchor = List.mem i.id pair.R.anchors in
      if not (is_anchor || is_constant side x (bits i)) then raise (Outside "assume");
      let test = { i with args = [x]; results = [];
                   targets = [(on, if is_anchor then [] else [x]); (off, [])] } in
      let known = { i with id = insts + 2 * i.id; opcode = "const"; imm = bits i; args = [] } in
      let leaves = { i with id = insts + 2 * i.id + 1; opcode = "leave"; results = [] } in
      let first = { b with insts = List.rev (test :: done_) } in
      let out = { R.block = off; params = []; insts = [leaves] } in
      let next = { R.block = on; params = if is_anchor then [] else [(y, ty)]; insts = [] } in
      first :: out :: cut next (if is_anchor then [known] else []) rest
    | i :: rest -> cut b (i :: done_) rest in
  List.concat_map (fun (b : R.block) -> cut b [] (List.rev b.insts))
    (List.rev pair.R.versions.(side).R.blocks)

(* A pair in which assumptions are branches. *)
let split (pair : R.pair) =
  if not (has pair) then pair
  else begin
    let all = Array.to_list pair.versions in
    let blocks = List.concat_map (fun (s : R.side) -> s.blocks) all in
    let insts = bound (fun (i : R.inst) -> i.id) (all_insts blocks) in
    let ids = (insts, bound (fun (b : R.block) -> b.block) blocks) in
    let is_constant = is_constant pair in
    (* As the reader leaves them: the last first. *)
    let side n = { R.blocks = List.rev_map (fun (b : R.block) ->
      { b with insts = List.rev b.insts }) (split_side pair is_constant n ids) } in
    let versions = [| side 0; side 1 |] in
    let assumed = List.filter is_assume (all_insts blocks) in
    let leaves = List.sort_uniq compare (List.map (fun (i : R.inst) -> insts + 2 * i.id + 1)
      (List.filter (fun (i : R.inst) -> List.mem i.id pair.anchors) assumed)) in
    { pair with versions; anchors = leaves @ pair.anchors }
  end

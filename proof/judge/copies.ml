(* Entries across the copy that a version with inlined code was optimized from. The kernel accepts
   the copy and the entries; what is computed here is claims: the names of values, and where each
   step of a composed entry is from. That a landing belongs to the function of an instance is read
   from the file, where functions stand in the order of their numbers. *)
open Kernel
open Claims
open Judge
module R = Reader

type judged_pair = { raw : R.pair; maps : (string * judged) list }
let order : (string, int) Hashtbl.t = Hashtbl.create 64
let twice = ref false
let landings : (string, direction Lazy.t) Hashtbl.t = Hashtbl.create 64
let current : judged_pair list ref = ref []
let pending : (R.across * judged_pair list) list ref = ref []

let func name =
  if Hashtbl.mem order name then twice := true;
  Hashtbl.replace order name (Hashtbl.length order);
  current := []
let pair p =
  let maps = Judge.pair p in
  if p.label <> "-" then current := { raw = p; maps } :: !current
let landing (p : R.pair) =
  Hashtbl.replace landings p.fname (lazy (
    let (tbl, lang, anch, agree, nids, before, after) = sides p in
    direction tbl lang anch agree nids (before, after) (fun _ _ -> Leaf)))
let copy c = pending := (c, !current) :: !pending

let code d side = { ctab = d.tbl; canc = d.anch; cver = side.v }
let callee n =
  let o = Lang.op n in
  match String.split_on_char ':' o.imm with
  | ["func"; f] when o.opcode = "call" -> int_of_string_opt f
  | _ -> None
let returns n = (Lang.op n).opcode = "return"

(* ** The copy *)

type stand = {
  claim : (int, Rules.claim) copies; whole : (int, Rules.claim) code; is_copy : bool;
  copies_of : (int, int list) Hashtbl.t;        (* by instruction of instance 0: its copies *)
  origin_of : (int, int * int) Hashtbl.t;       (* by instruction of the copy *)
  sides_of : side array; dirs : direction array }

let find_map (pairs : judged_pair list) label direction =
  match List.find_opt (fun p -> p.raw.R.label = label) pairs with
  | Some p ->
    (match List.assoc_opt direction p.maps with
     | Some j -> (p.raw, j) | None -> raise (Outside "copy-pairs"))
  | None -> raise (Outside "copy-pairs")

(* Walks the blocks of the copy beside the code that they are copies of. *)
let walk (raw : R.pair) (side : side) (starts : (int * int * int) list) sides =
  let blocks = Array.of_list (List.rev raw.R.versions.(0).R.blocks) in
  let at = Hashtbl.create 64 in
  List.iter (fun (b, i, inst) -> Hashtbl.replace at b (i, inst)) starts;
  let begins = Array.make (Array.length blocks) (nowhere, (nowhere, 0)) in
  let named = Hashtbl.create 256 and owned = Hashtbl.create 256 in
  let copies_of = Hashtbl.create 64 and origin_of = Hashtbl.create 64 in
  let define i y x = Hashtbl.replace named (i, y) x; Hashtbl.replace owned x (i, y) in
  let rec defines i ys xs = match ys, xs with
    | y :: ys, x :: xs -> define i y x; defines i ys xs | _ -> () in
  Array.iteri (fun n (b : R.block) ->
    match Hashtbl.find_opt at b.R.block with
    | Some (i, inst) when i < Array.length sides ->
      let original : side = sides.(i) in
      (match Hashtbl.find_opt original.place inst with
       | Some (b0, k0) ->
         begins.(n) <- (i, (b0, k0));
         let old = original.blks.(b0) and now = side.blks.(n) in
         (if k0 = 0 then defines i old.ps now.ps
          else match old.bi (k0 - 1) with
            | IEff (_, _, _, r) -> defines i r now.ps | IPure _ -> ());
         for k = 0 to min (now.bn - 1) (old.bn - k0 - 1) do
           match now.bi k, old.bi (k0 + k) with
           | IPure (_, x, _, _), IPure (_, y, _, _) -> define i y x
           | IEff (_, _, _, xs), IEff (_, _, _, ys) -> defines i ys xs
           | _ -> ()
         done;
         (* Instructions of the original by place. *)
         List.iteri (fun k (x : R.inst) -> Hashtbl.replace origin_of x.R.id (n, k))
           (List.rev b.R.insts)
       | None -> ())
    | _ -> ()) blocks;
  let name i y = try Hashtbl.find named (i, y) with Not_found -> nowhere in
  let owner x = try Hashtbl.find owned x with Not_found -> (nowhere, nowhere) in
  let get n = if n < Array.length begins then begins.(n) else (nowhere, (nowhere, 0)) in
  ignore copies_of;
  (get, name, owner, origin_of)

let stand (c : R.across) pairs =
  if !twice then raise (Outside "copy-names");
  let (_, one) = find_map pairs "base-cleaned" "forward" in
  let (raw, two) = find_map pairs "copy-optimized" "forward" in
  let instances = Array.of_list (List.rev c.R.instances) in
  if instances = [||] then raise (Outside "copy-instances");
  let own = instances.(0).R.ifunc in
  let first = own - Hashtbl.find order c.R.aname in
  let by_number = Hashtbl.create 64 in
  Hashtbl.iter (fun name n -> Hashtbl.replace by_number (first + n) name) order;
  let of_instance (i : R.instance) =
    if i.R.ifunc = own then (one.dir, one.dir.q)
    else match Hashtbl.find_opt by_number i.R.ifunc with
      | None -> raise (Outside "copy-callee")
      | Some name ->
        match Hashtbl.find_opt landings name with
        | None -> raise (Outside "copy-landing")
        | Some d -> let d = Lazy.force d in
          if not (d.proved && d.traps) then raise (Outside "copy-landing");
          (d, d.q) in
  let both = Array.map of_instance instances in
  let sides = Array.map snd both and dirs = Array.map fst both in
  let (begins, name, owner, origin_of) = walk raw two.dir.p c.R.starts sides in
  let caller i =
    match (if i < Array.length instances then instances.(i).R.called else None) with
    | Some (j, inst) when j < Array.length sides ->
      (try (j, Hashtbl.find sides.(j).place inst) with Not_found -> (nowhere, (nowhere, 0)))
    | _ -> (nowhere, (nowhere, 0)) in
  let codes = Array.map (fun (d, s) -> code d s) both in
  let claim = { cn = Array.length instances; orig = (fun i -> codes.(i));
                fnc = (fun i -> instances.(i).R.ifunc); caller; begins; name; owner } in
  let whole = code two.dir two.dir.p in
  let ok = chk_copy two.dir.lang callee returns whole claim in
  if why then begin
    let bad = List.filter (fun b -> not (chk_copy_block two.dir.lang callee returns whole claim b))
      (List.init two.dir.p.v.fn Fun.id) in
    if not ok then Printf.printf "copy %s blocks %s\n" c.R.aname
      (String.concat "," (List.map string_of_int bad))
  end;
  { claim; whole; is_copy = ok; copies_of = Hashtbl.create 1; origin_of; sides_of = sides; dirs }

(* ** Where steps are from *)

(* The steps of a composed entry by operation and operands. *)
let index_steps steps =
  let h = Hashtbl.create 16 in
  List.iteri (fun n s -> if not (Hashtbl.mem h (s.so, s.sa)) then Hashtbl.replace h (s.so, s.sa) n)
    steps;
  h
(* For each step of an entry, the step of the composed entry that does the same. *)
let follow index from_ source steps mark =
  let made = Array.make (List.length steps) None in
  let operand = function
    | Src x -> source x
    | Stp n -> if n < Array.length made then Option.map (fun k -> Stp k) made.(n) else None in
  List.iteri (fun m s ->
    let a = List.map operand s.sa in
    if List.for_all Option.is_some a then
      match Hashtbl.find_opt index (s.so, List.map Option.get a) with
      | Some n -> made.(m) <- Some n; from_.(n) <- mark m :: from_.(n)
      | None -> ()) steps;
  operand
(* The claim where each step is from, and the value that each operand of the first entry is. *)
let origins (e1 : int entry) nexts steps =
  let index = index_steps steps in
  let from_ = Array.make (List.length steps) [] in
  let first = follow index from_ (fun x -> Some (Src x)) e1.steps (fun m -> First m) in
  List.iteri (fun j n ->
    let source y = match n.given y with
      | Some x -> Option.bind (get x e1.assigns) first
      | None -> None in
    let _read = follow index from_ source n.ne.steps (fun m -> Next (j, m)) in ()) nexts;
  fun n -> if n < Array.length from_ then from_.(n) else []

(* ** Entries *)

let entry_at (j : judged) source = Hashtbl.find_opt j.entries source

(* The entry of the second pair from the copy of a place of the function itself. *)
let on_from st (two : judged) (place : int * int) =
  let found = ref None in
  Hashtbl.iter (fun source (e : int entry) ->
    let (b, k) = e.src in
    let (i, (b0, k0)) = st.claim.begins b in
    if !found = None && i = 0 && (b0, k0 + k) = place then found := Some (source, e)) two.entries;
  Option.map snd !found

let judge_into st (one : judged) (two : judged) current (e : R.entry) =
  match entry_at one e.R.source with
  | None -> "refuse first-entry"
  | Some e1 ->
    match on_from st two e1.tgt with
    | None -> "refuse second-entry"
    | Some e2 ->
      let d = { one.dir with q = two.dir.q } in
      match entry_of d current e with
      | exception Not_found -> "refuse source-point"
      | x ->
        let from_ = origins e1 [on_copy st.claim e1 e2] x.steps in
        if chk_into_entry two.dir.lang st.whole st.claim e1 e2 x from_ then "accept"
        else if not (chk_place st.whole st.claim e1 e2) then "refuse copy-place"
        else if not (chk_steps two.dir.lang e1 (after_copy st.claim e1 e2) x.requires x.steps from_)
        then "refuse copy-steps"
        else "refuse copy-assign"

let judge (c : R.across) pairs =
  let say = say_of c.R.aname "across" in
  let each f = List.iter (fun (m : R.mapping) ->
    each_entry m (fun current e -> say m.direction e.R.source (f m.direction current e)))
    (List.rev c.R.across) in
  match stand c pairs with
  | exception Outside reason -> each (fun d _ _ -> Printf.sprintf "outside %s-%s" reason d)
  | st ->
    let (_, one) = find_map pairs "base-cleaned" "forward" in
    let (_, two) = find_map pairs "copy-optimized" "forward" in
    let whole = one.dir.proved && one.dir.traps && two.dir.proved && two.dir.traps in
    each (fun d current e ->
      if not st.is_copy then "refuse copy-" ^ d
      else if d = "out" then "outside copy-out"
      else if not whole then "outside copy-pair"
      else judge_into st one two current e)

let finish () = List.iter (fun (c, pairs) -> judge c pairs) (List.rev !pending)

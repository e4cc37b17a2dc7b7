(* Entries across the copy that a version with inlined code was optimized from. The kernel accepts
   the copy and the entries; what is computed here is claims: the names of values, and where each
   step of a composed entry is from. That a function has the number that the file tells is
   believed. *)
open Kernel
open Claims
open Judge
module R = Reader

type judged_pair = { raw : R.pair; maps : (string * judged) list }
(* Whether names or numbers stand twice, or a landing behind a function. *)
let twice = ref false
let seen : (string, unit) Hashtbl.t = Hashtbl.create 64
(* By number: the landings, with their names and bases. *)
type landing = { of_ : string; base : R.side; lands_in : direction Lazy.t }
let landings : (int, landing) Hashtbl.t = Hashtbl.create 64
let landed : (string, unit) Hashtbl.t = Hashtbl.create 64
(* By name: the bases of the functions that have landings. *)
let bases : (string, R.side) Hashtbl.t = Hashtbl.create 64
(* The functions with inlined code, by name and by number. *)
let numbers : (string, int) Hashtbl.t = Hashtbl.create 64
let names : (int, string) Hashtbl.t = Hashtbl.create 64
let current : judged_pair list ref = ref []
(* What waits for the numbers of functions, with the place of its lines among the others. *)
let pending : (R.across * judged_pair list * Buffer.t) list ref = ref []
let printed : Buffer.t list ref = ref []

let print_lines () =
  List.iter (fun b -> print_string (Buffer.contents b)) (List.rev (!lines :: !printed));
  printed := []; lines := Buffer.create 4096
let func name =
  if !pending = [] then print_lines ();
  if Hashtbl.mem seen name then twice := true;
  Hashtbl.replace seen name ();
  current := []
let pair (p : R.pair) =
  if (p.label = "-" || p.label = "base-cleaned") && Hashtbl.mem landed p.fname then
    Hashtbl.replace bases p.fname p.versions.(0);
  let maps = Judge.pair p in
  if p.label <> "-" then current := { raw = p; maps } :: !current
let landing (p : R.pair) =
  let lands_in = lazy (
    let (tbl, lang, anch, agree, nids, before, after) = sides p in
    let d = direction tbl lang anch agree nids (before, after) (fun _ _ -> Leaf) in
    { d with proved = d.proved && flaw_of p = None }) in
  if Hashtbl.mem landed p.fname || Hashtbl.length seen > 0 then twice := true;
  Hashtbl.replace landed p.fname ();
  match p.fnumber with
  | Some n ->
    if Hashtbl.mem landings n then twice := true;
    Hashtbl.replace landings n { of_ = p.fname; base = p.versions.(0); lands_in }
  | None -> ()
let copy (c : R.across) =
  (match c.anumber with
   | Some n ->
     if Hashtbl.mem names n then twice := true;
     Hashtbl.replace numbers c.aname n; Hashtbl.replace names n c.aname
   | None -> ());
  let own = Buffer.create 4096 in
  pending := (c, !current, own) :: !pending;
  printed := own :: !lines :: !printed;
  lines := Buffer.create 4096

let body d side = { ctab = d.tbl; canc = d.anch; cver = side.v }
let callee = function
  | Effect (n, _) ->
    (match Lang.parts n with
     | ["call"; _; imm] ->
       (match String.split_on_char ':' imm with
        | ["func"; f] -> int_of_string_opt f | _ -> None)
     | _ -> None)
  | _ -> None
let returns = function
  | End n -> (match Lang.parts n with "return" :: _ -> true | _ -> false)
  | _ -> false

(* ** The copy *)

type stand = {
  claim : (code, citation) copies; whole : (code, citation) body; is_copy : bool;
  into : judged; onto : judged;                 (* base to cleaned, and copy to optimized *)
  back : judged; off : judged;                  (* cleaned to base, and optimized to copy *)
  lands : direction array;                      (* by instance: to where activations of it land *)
  texts : Shape.text Lazy.t * Shape.text Lazy.t * Shape.text Lazy.t;  (* base, optimized, copy *)
  from_copy : (int * int, code entry) Hashtbl.t; (* entries of [onto], by place of instance 0 *)
  from_own : (int * int, code entry) Hashtbl.t } (* entries of [back], by source point *)

let find_map (pairs : judged_pair list) label direction =
  let pair = List.find_opt (fun p -> p.raw.R.label = label) pairs in
  match Option.bind pair (fun p -> List.assoc_opt direction p.maps) with
  | Some j when j.dir.proved && j.dir.traps -> j
  | _ -> raise (Outside "copy-pair")

(* Walks the blocks of the copy beside the code that they are copies of. *)
let walk (raw : R.pair) (side : side) (starts : (int * int * int) list) sides =
  let blocks = Array.of_list (List.rev raw.R.versions.(0).R.blocks) in
  if Array.length blocks <> Array.length side.blks then raise (Outside "copy-assume");
  let at = Hashtbl.create 64 in
  List.iter (fun (b, i, inst) -> Hashtbl.replace at b (i, inst)) starts;
  let begins = Array.make (Array.length blocks) (nowhere, (nowhere, 0)) in
  let named = Hashtbl.create 256 and owned = Hashtbl.create 256 in
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
         done
       | None -> ())
    | _ -> ()) blocks;
  let name i y = try Hashtbl.find named (i, y) with Not_found -> nowhere in
  let owner x = try Hashtbl.find owned x with Not_found -> (nowhere, nowhere) in
  let get n = if n < Array.length begins then begins.(n) else (nowhere, (nowhere, 0)) in
  (get, name, owner)

(* The accepted entries of a mapping by a key of theirs. *)
let by key (j : judged) =
  let h = Hashtbl.create 64 in
  Hashtbl.iter (fun _ e -> match key e with
    | Some k -> Hashtbl.replace h k e | None -> ()) j.entries;
  h

(* The certificate of the source version of a direction with itself. *)
let itself d armed =
  let agree a = match Hashtbl.find_opt d.p.place a with
    | Some at -> set_of (leaves_at d.p at) | None -> Leaf in
  direction d.tbl d.lang d.anch agree d.k.nids (d.p, d.p) armed
let armed_by (j : judged) =
  let h = Hashtbl.create 64 in
  Hashtbl.iter (fun _ (e : code entry) -> Hashtbl.replace h e.src e.requires) j.entries;
  fun b k -> try Hashtbl.find h (b, k) with Not_found -> Leaf

(* A claim that is wrong, as the text of the file shows. *)
exception Wrong
(* Where activations of another function land. The function has no other base and no other number
   where the file has it. *)
let landing_in n =
  match Hashtbl.find_opt landings n with
  | None -> raise (Outside "copy-landing")
  | Some { of_; base; lands_in = lazy d } ->
    let fits found is = match found with Some x -> is x | None -> true in
    let is_base (own : R.side) = own.blocks = base.blocks in
    if not (fits (Hashtbl.find_opt bases of_) is_base && fits (Hashtbl.find_opt numbers of_) ((=) n)
            && fits (Hashtbl.find_opt names n) ((=) of_)) then raise Wrong;
    if d.proved && d.traps then d else raise (Outside "copy-landing")

let stand (c : R.across) pairs =
  if !twice then raise (Outside "copy-names");
  let into = find_map pairs "base-cleaned" "forward" in
  let back = find_map pairs "base-cleaned" "backward" in
  let onto = find_map pairs "copy-optimized" "forward" in
  let off = find_map pairs "copy-optimized" "backward" in
  let raw = (List.find (fun p -> p.raw.R.label = "copy-optimized") pairs).raw in
  let instances = Array.of_list (List.rev c.R.instances) in
  if instances = [||] then raise (Outside "copy-instances");
  let own = match c.R.anumber with Some n -> n | None -> raise (Outside "copy-number") in
  if instances.(0).R.ifunc <> own then raise Wrong;
  let first_pair = (List.find (fun p -> p.raw.R.label = "base-cleaned") pairs).raw.R.versions in
  let unchanged = first_pair.(0).R.blocks = first_pair.(1).R.blocks in
  let base = lazy (itself into.dir (armed_by into)) in
  (* The function itself is cleaned first. Where that changes nothing, it is named the base. *)
  let landing_of n (i : R.instance) =
    if i.R.ifunc = own && i.R.iversion = "cleaned" then back.dir
    else if i.R.iversion <> "base" || (n = 0 && not unchanged) then raise Wrong
    else if n = 0 then back.dir
    else if i.R.ifunc <> own then landing_in i.R.ifunc
    else if (Lazy.force base).proved && (Lazy.force base).traps then Lazy.force base
    else raise (Outside "copy-landing") in
  let lands = Array.mapi landing_of instances in
  let sides = Array.map (fun d -> d.p) lands in
  let (begins, name, owner) = walk raw onto.dir.p c.R.starts sides in
  let no_place = (nowhere, (nowhere, 0)) in
  let caller i =
    match (if i < Array.length instances then instances.(i).R.called else None) with
    | Some (j, inst) when j < Array.length sides ->
      (try (j, Hashtbl.find sides.(j).place inst) with Not_found -> no_place)
    | _ -> no_place in
  let codes = Array.map (fun d -> body d d.p) lands in
  let claim : (code, citation) copies = { cn = Array.length instances; orig = (fun i -> codes.(i));
                fnc = (fun i -> instances.(i).R.ifunc); caller; begins; naming = name; owner } in
  let whole = body onto.dir onto.dir.p in
  let is_copy = chk_copy onto.dir.lang callee returns whole claim in
  if why && not is_copy then begin
    let holds b = chk_copy_block onto.dir.lang callee returns whole claim b in
    let bad = List.filter (fun b -> not (holds b)) (List.init onto.dir.p.v.fn Fun.id) in
    Printf.printf "copy %s blocks=%s\n" c.R.aname (String.concat "," (List.map string_of_int bad))
  end;
  let place (e : code entry) =
    let (b, k) = e.src in
    let (i, (b0, k0)) = begins b in
    if i = 0 then Some (b0, k0 + k) else None in
  let texts = (lazy (Shape.text into.dir.p), lazy (Shape.text onto.dir.q),
               lazy (Shape.text onto.dir.p)) in
  { claim; whole; is_copy; into; onto; back; off; lands; texts; from_copy = by place onto;
    from_own = by (fun e -> Some e.src) back }

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
let origins (e1 : code entry) nexts steps =
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

(* What no claim of the theorem needs: bits of a step that is no constant, and the kept values. *)
let flaw p q at (current, (e : R.entry)) assigned =
  let odd (s : R.step) = s.R.op <> "const" && s.R.bits <> "0" in
  if List.exists odd e.R.steps then Some "composed-steps"
  else Shape.flaw (Lazy.force p) (Lazy.force q) at ~required:(listed current e)
    ~kept:e.R.kept ~assigned
let unless_flawed found = match found with None -> "accept" | Some check -> "refuse " ^ check

let judge_into st current (e : R.entry) =
  match Hashtbl.find_opt st.into.entries e.R.source with
  | None -> "refuse first-entry"
  | Some e1 ->
    match Hashtbl.find_opt st.from_copy e1.tgt with
    | None -> "refuse second-entry"
    | Some e2 ->
      let d = { st.into.dir with q = st.onto.dir.q } in
      match entry_of d current e with
      | exception Not_found -> "refuse source-point"
      | _ when Shape.odd_operands d.p e <> None -> "refuse composed-operands"
      | x ->
        let lang = d.lang in
        let from_ = origins e1 [on_copy st.claim e1 e2] x.steps in
        if chk_into_entry lang st.whole st.claim e1 e2 x from_ then
          let (base, optimized, _) = st.texts in
          unless_flawed (flaw base optimized (x.src, x.tgt) (current, e) (assigned current e))
        else if not (chk_place st.whole st.claim e1 e2) then "refuse copy-place"
        else if not (chk_steps lang e1 (after_copy st.claim e1 e2) x.requires x.steps from_)
        then "refuse copy-steps"
        else "refuse copy-assign"

(* The certificate of a direction, as the kernel has it. *)
let cert d armed = { ct = d.tbl; canch = d.anch; cp = d.p.v; cq = d.q.v; ck = d.k; cpast = d.past;
                     cahead = d.ahead; cneed = d.need; carmed = armed }

(* An entry of a base to itself, which keeps what is needed or asked for. *)
let staying d (b, k) asked =
  let values = List.sort_uniq compare (Flow.elements (d.need b k) asked) in
  let own = List.fold_left (fun m x -> Flow.put x (Src x) m) MLeaf values in
  let e = { src = (b, k); tgt = (b, k); requires = set_of values; steps = []; assigns = own } in
  if accept_entry d.lang d.tbl d.anch d.p.v d.q.v d.k d.past d.ahead d.need e && fires d e
  then Some e else None

let judge_out st lcs current (e : R.entry) =
  match Hashtbl.find_opt st.off.entries e.R.source with
  | None -> "refuse first-entry"
  | Some e1 ->
    let (b, j) = e1.tgt in
    let (id, (b0, k0)) = st.claim.begins b in
    let frames = List.rev e.R.frames in
    (* The code of the entry, and the memory of the innermost activation. *)
    let d = { st.off.dir with q = st.off.dir.p } in
    let reads = { e with R.target = e.R.source;
                  assigns = List.concat_map (fun (f : R.frame) -> f.R.fassigns) frames } in
    match entry_of d current reads with
    | exception Not_found -> "refuse source-point"
    | _ when Shape.odd_operands d.p e <> None -> "refuse composed-operands"
    | x ->
      let m1 = Hashtbl.find d.q.memory_before e.R.source in
      let memory = get m1 x.assigns in
      let rec land_ j id at frames = match frames with
        | [] -> []
        | (f : R.frame) :: rest ->
          if id >= Array.length st.lands || f.R.func <> st.claim.fnc id || f.R.fversion <> "base"
             || f.R.within <> (j > 0) then raise (Outside "frame");
          let d = st.lands.(id) in
          if List.exists (fun (v, _) -> v >= d.q.named) f.R.fassigns then raise (Outside "assigns");
          let own = List.fold_left (fun m (v, o) -> Flow.put v (operand o) m) MLeaf f.R.fassigns in
          let where_ = Hashtbl.find d.q.place f.R.finst in
          let own = match memory with
            | Some o when j = 0 -> Flow.put (Hashtbl.find d.q.memory_before f.R.finst) o own
            | _ -> own in
          let onward =
            if d == st.back.dir then Hashtbl.find_opt st.from_own at
            else staying d at (List.map fst f.R.fassigns
              @ (if j = 0 then [Hashtbl.find d.q.memory_before f.R.finst] else [])) in
          match onward with
          | None -> raise (Outside "onward")
          | Some onward ->
            let (c, at') = st.claim.caller id in
            { where_; gives = own; onward } :: land_ (j + 1) c at' rest in
      match land_ 0 id (b0, k0 + j) frames with
      | exception Not_found -> "refuse frame-place"
      | exception Outside what -> "refuse frame-" ^ what
      | lands ->
        let entry = { fsrc = x.src; freq = x.requires; fsteps = x.steps; frames = lands } in
        let from_ = origins e1 (chain st.claim id lands) x.steps in
        if chk_out_entry d.lang lcs st.claim e1 entry from_ then
          let (_, optimized, whole) = st.texts in
          unless_flawed (flaw optimized whole (x.src, e1.tgt) (current, reads) [])
        else if not (chk_steps d.lang e1 (List.nth_opt (chain st.claim id lands)) x.requires x.steps
          from_) then "refuse frame-steps"
        else "refuse frame-assigns"

let judge (c : R.across) pairs =
  let say = say_of c.R.aname "-" in
  let each f = List.iter (fun (m : R.mapping) ->
    each_entry m (fun current e -> say m.direction e.R.source (f m.direction current e)))
    (List.rev c.R.across) in
  match stand c pairs with
  | exception Outside reason -> each (fun d _ _ -> Printf.sprintf "outside %s-%s" reason d)
  | exception Wrong -> each (fun d _ _ -> "refuse copy-" ^ d)
  | st when not st.is_copy -> each (fun d _ _ -> "refuse copy-" ^ d)
  | st ->
    let certs = Array.map (fun d -> cert d (fun _ _ -> Leaf)) st.lands in
    each (fun direction current e ->
      if direction = "into" then judge_into st current e
      else judge_out st (fun id -> certs.(id)) current e)

let finish () =
  let last = !lines in
  List.iter (fun (c, pairs, own) -> lines := own; judge c pairs) (List.rev !pending);
  lines := last;
  print_lines ()

(* Wrong claims, for `proof/conjuncts`: no file can damage what the judge computes itself. WRONG is a
   seed, 0 for none: it selects a kind of claim, and which of them are changed. *)
open Kernel

let seed = match Sys.getenv_opt "WRONG" with Some n -> int_of_string n | None -> 0
let kinds = 18
let kind = if seed = 0 then -1 else seed mod kinds
let some x = Hashtbl.hash (seed, x) mod 6 = 0
let at n change f x = if kind = n && some x then change (f x) x else f x

let version (v : 'op version) =
  let other x = x + (if Hashtbl.hash (seed, x, 1) mod 2 = 0 then 1 else -1) in
  let shift (b, k) x = if Hashtbl.hash (seed, x, 2) mod 2 = 0 then (b, max 0 (k - 1)) else (0, 0) in
  { v with
    dl = at 0 shift v.dl; eloc = at 1 shift v.eloc;
    doms = at 2 (fun l _ -> match l with _ :: r when r <> [] -> r | l -> l)
        (at 3 (fun l _ -> match l with x :: _ -> [x; 0] | l -> l) (at 4 (fun l _ -> l @ [1; 2]) v.doms));
    sole = at 5 (fun _ x -> Some (max 0 (other x))) v.sole;
    home = at 6 (fun _ _ -> 0) (at 7 (fun b _ -> other b) v.home);
    holder = at 8 (fun x _ -> max 0 (other x)) v.holder;
    lv = at 9 (fun _ _ -> false) v.lv;
    mreads = at 10 (fun _ _ -> []) v.mreads }
let table tbl =
  { tbl with deps = at 11 (fun _ _ -> []) tbl.deps; mdep = at 12 (fun _ _ -> []) tbl.mdep }
let rec all lo hi = if lo >= hi then Leaf else
  let m = (lo + hi) / 2 in Node (all lo m, m, all (m + 1) hi)
let agree tbl f = at 13 (fun _ _ -> all 0 tbl.tn) f
let reached f = at 14 (fun b _ -> not b) f
let need f b k = if kind = 15 && some (b, k) then Leaf else f b k
let clean (past, ahead) = (at 16 (fun _ _ -> true) past, at 17 (fun _ _ -> true) ahead)

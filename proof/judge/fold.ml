(* Compares the folding of the kernel with that of Osier: `examples/folds.rs` prints operations,
   constants and results. *)
open Kernel

exception Malformed
let number w = match Int64.of_string_opt ("0u" ^ w) with
  | Some n -> Lang.z_of n | None -> raise Malformed
let verdict line = match String.split_on_char ' ' line with
  | [opcode; ty; source; args; theirs] ->
    let o = Lang.key opcode ty source "-" in
    let args = List.map number (String.split_on_char ',' args) in
    let theirs = if theirs = "-" then None else Some (number theirs) in
    (match folded Lang.fold_float o args, theirs with
     | Some a, Some b when a = b -> "equal"
     | None, None -> "not folded by either"
     | _ -> "DIFFERENT")
  | _ -> raise Malformed

(* Fails if a result differs, or if fewer than [least] are equal. *)
let run least =
  let counts = Hashtbl.create 8 and line = ref 0 in
  let count v = try Hashtbl.find counts v with Not_found -> 0 in
  (try
     while true do
       let text = input_line stdin in
       incr line;
       let v = verdict text in
       Hashtbl.replace counts v (count v + 1);
       if v = "DIFFERENT" && count v <= 10 then Printf.printf "%s %s\n" v text
     done
   with
   | End_of_file -> ()
   | Malformed -> Printf.eprintf "judge: line %d: no operation on constants\n" !line; exit 2);
  List.iter (fun v -> Printf.printf "%-24s %d\n" v (count v))
    ["equal"; "not folded by either"; "DIFFERENT"];
  if count "DIFFERENT" > 0 then exit 1;
  if count "equal" < least then begin
    Printf.printf "FAILED: %d results are equal, and %d must be\n" (count "equal") least; exit 1
  end

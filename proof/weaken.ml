(* usage: ocaml proof/weaken.ml < KERNEL > WEAK_KERNEL 2> CONJUNCTS
   Writes the kernel so that each conjunct of it can be left out: [Weak.without n] holds while the
   one with the number n is. The list of conjuncts has a line for each: number, function, text. *)

let source =
  let all = Buffer.create 65536 in
  (try while true do Buffer.add_channel all stdin 1 done with End_of_file -> ());
  Buffer.contents all
let size = String.length source
let out = Buffer.create (2 * size)
let count = ref 0
let within = ref ""

let is_word c = match c with 'a'..'z' | 'A'..'Z' | '0'..'9' | '_' | '\'' | '.' -> true | _ -> false
let is_blank c = c = ' ' || c = '\n'
let rec skip i = if i < size && is_blank source.[i] then skip (i + 1) else i

(* The end of the operand that begins at [i]: a word, or an expression in parentheses. *)
let ends i =
  if source.[i] = '(' then
    let rec close i depth = match source.[i] with
      | '(' -> close (i + 1) (depth + 1)
      | ')' -> if depth = 1 then i + 1 else close (i + 1) (depth - 1)
      | _ -> close (i + 1) depth in
    close i 0
  else
    let rec word i = if i < size && is_word source.[i] then word (i + 1) else i in
    word i

let shown i j =
  let words = String.split_on_char '\n' (String.sub source i (j - i)) |> List.map String.trim in
  let text = String.concat " " words in
  if String.length text > 90 then String.sub text 0 87 ^ "..." else text

let starts i word =
  i + String.length word <= size && String.sub source i (String.length word) = word

(* Copies from [i] to [stop], with every conjunction rewritten. *)
let rec copy i stop =
  if i < stop then
    if starts i "(&&)" then begin
      let a = skip (i + 4) in
      let a_end = ends a in
      let b = skip a_end in
      let b_end = ends b in
      Buffer.add_string out "(";
      operand a a_end;
      Buffer.add_string out " && ";
      operand b b_end;
      Buffer.add_string out ")";
      copy b_end stop
    end else begin
      (* At the start of a line, a definition gives the conjuncts behind it their function. *)
      if i = 0 || source.[i - 1] = '\n' then
        List.iter (fun word -> if starts i word then begin
          let at = i + String.length word in
          let at = if starts at "rec " then at + 4 else at in
          within := String.sub source at (ends at - at)
        end) ["let "; "and "];
      Buffer.add_char out source.[i];
      copy (i + 1) stop
    end
(* A conjunction inside a conjunction has numbers of its own. *)
and operand i j =
  if starts (skip (i + 1)) "(&&)" && source.[i] = '(' then copy i j
  else begin
    let n = !count in
    incr count;
    Printf.eprintf "%d %s %s\n" n !within (shown i j);
    Buffer.add_string out (Printf.sprintf "(Weak.without %d || " n);
    copy i j;
    Buffer.add_string out ")"
  end

let () = copy 0 size; print_string (Buffer.contents out)

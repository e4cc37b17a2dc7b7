(** The hypotheses about calls hold in a machine of Meaning.v, for Osier's operations: [calls_echo].

    [main(x) = id(x)], and [id(x) = x]. A call gives back its operands, memory among them, and [id]
    does, too. The copy of [main] has the code of [id] in the place of the call. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Classes Version Pair Entry Clean Main Hops Traps Real.
From Osier Require Import Integers Bytes.
From Osier Require Import Operations Meaning Rules Matching Instance Copy.

(** Floats are what the judge folds, and sizes stay. *)
Definition echo (run : fcode -> list Z -> option Z) : machine unit := {|
  float := fun f xs => match run f xs with Some z => z | None => 0%Z end;
  float_traps := fun _ _ => false;
  pure := fun _ _ => 0%Z;
  reading := fun _ _ => 0%Z;
  words := fun _ x _ => x;
  act := fun _ vs w => (w, vs);
  pages := fun _ _ => 1%Z;
  entries := fun _ _ => 0%Z;
  owned := fun _ _ _ => false
|}.
Lemma echo_right run : FloatsFold run (echo run) /\ SizesGrow (echo run).
Proof.
  split; [intros f xs z H; simpl; now rewrite H|]. constructor; simpl; auto; intros; lia.
Qed.
Lemma coerce_same t v : has_type t v -> coerce t v = v.
Proof.
  unfold has_type, coerce. destruct (Nat.eqb t memory_type).
  - intros [m ->]. reflexivity.
  - intros [z [-> Hz]]. simpl. unfold wrap. now rewrite Z.mod_small.
Qed.

(** ** The versions *)
Definition call : code := Effect 7 [tcode I32; memory_type].
Definition return_ : code := End 0.
Definition callee (o : code) : option nat :=
  match o with Effect 7 _ => Some 1%nat | _ => None end.
Definition returns (o : code) : bool := code_eqb o return_.
Definition argument (n t : nat) : term code citation := Term (KArg n) n t ByItself.
Definition version_of (n : nat) (blocks : nat -> blk code) (terms : nat -> nat)
  (defs : nat -> nat * nat) (above : nat -> list nat) : version code := {|
  fn := n; fb := blocks; tm := terms; lv := fun _ => true; doms := above; dl := defs;
  sole := fun b => match b with 0 => None | S a => Some a end; home := fun _ => 9;
  eloc := fun _ => (0, 0); mreads := fun _ => []; holder := fun x => x |}.
Definition table_of (n : nat) : table code citation := {|
  tn := n; tg := fun t => match t with
                          | 0 => argument 0 (tcode I32)
                          | 1 => argument 1 memory_type
                          | 2 => Term (KRes 5 0) 2 (tcode I32) ByItself
                          | _ => Term (KRes 5 1) 3 memory_type ByItself end;
  deps := fun _ => []; mdep := fun _ => [] |}.
Definition identity : version code := version_of 1
  (fun _ => Blk [0; 1] 0 (fun _ => IPure 0 0 return_ []) (Last 2 return_ [0; 1] []))
  (fun x => x) (fun _ => (0, 0)) (fun _ => [0]).
Definition main : version code := version_of 1
  (fun _ => Blk [0; 1] 1 (fun _ => IEff 5 call [0; 1] [2; 3]) (Last 6 return_ [2; 3] []))
  (fun x => x) (fun x => if x <? 2 then (0, 0) else (0, 1)) (fun _ => [0]).
Definition copied : version code := version_of 3
  (fun b => match b with
            | 0 => Blk [0; 1] 0 (fun _ => IPure 0 0 return_ []) (Last 10 Jump [] [Edge 1 [0; 1]])
            | 1 => Blk [4; 5] 0 (fun _ => IPure 0 0 return_ []) (Last 12 Jump [] [Edge 2 [4; 5]])
            | _ => Blk [2; 3] 0 (fun _ => IPure 0 0 return_ []) (Last 6 return_ [2; 3] [])
            end)
  (fun x => match x with 0 | 2 | 4 => 0 | _ => 1 end)
  (fun x => match x with 0 | 1 => (0, 0) | 4 | 5 => (1, 0) | _ => (2, 0) end)
  (fun b => match b with 0 => [0] | 1 => [1; 0] | _ => [2; 1; 0] end).
Definition body_main := Body (table_of 4) (fun a => (a =? 5) || (a =? 6)) main.
Definition body_identity := Body (table_of 2) (fun a => a =? 2) identity.
Definition body_copied := Body (table_of 2) (fun a => a =? 6) copied.
Definition the_copy : copies code citation := {|
  cn := 2; orig := fun id => match id with 0 => body_main | _ => body_identity end;
  fnc := fun id => id; caller := fun _ => (0, (0, 0));
  begins := fun b => match b with 0 => (0, (0, 0)) | 1 => (1, (0, 0)) | _ => (0, (0, 1)) end;
  naming := fun id y => match id with 0 => y | _ => 4 + y end;
  owner := fun x => match x with S (S (S (S y))) => (1, y) | y => (0, y) end |}.

Section Echo.
Variable run : fcode -> list Z -> option Z.
Notation L := (rule_lang run).
Notation X := (echo run).
Notation M := (osier_sem X).
Notation start_id := (start M (table_of 2) identity).
Lemma run_of_identity a b w e :
  calm L M (table_of 2) (halts X) (canc body_identity) nowhere identity (start_id [a; b] w) e ->
  e = start_id [a; b] w.
Proof.
  intro Cm. destruct (calm_first _ _ _ _ _ _ _ _ _ Cm) as [->|[s [_ [St _]]]]; auto. discriminate.
Qed.
Lemma result_of_identity a b w : Main.result identity (start_id [a; b] w) return_ [a; b].
Proof. exists (fb identity 0). repeat split. Qed.
Lemma is_call id o vs : a_call M callee the_copy id o vs ->
  id = 1 /\ o = call /\ exists a b, vs = [a; b] /\ has_type (tcode I32) a /\ has_type memory_type b.
Proof.
  intros [Li [Co [[c [Lc Hc]] [Len Ta]]]]. destruct Hc as [b [k [B [i [a [r [EB N]]]]]]].
  destruct c as [|[|c]]; [| |simpl in Lc; lia].
  - destruct b as [|b]; [|discriminate]. inversion EB; subst B. destruct k as [|k]; [|discriminate].
    inversion N; subst. inversion Co as [Q]. simpl in Q. subst id. split; auto. split; auto.
    destruct vs as [|x [|y [|]]]; try discriminate. exists x, y. split; auto.
    split; [apply (Ta 0 0)|apply (Ta 1 1)]; reflexivity.
  - destruct b as [|b]; [|discriminate]. inversion EB; subst B. discriminate.
Qed.
Lemma call_echoes a b w : has_type (tcode I32) a -> has_type memory_type b ->
  effsem M call [a; b] w = (w, [a; b]).
Proof. intros Ha Hb. simpl. now rewrite !coerce_same. Qed.

Theorem calls_echo : CallsMean L M (halts X) callee returns the_copy /\
  CallsReturn L M (halts X) callee returns the_copy (fun _ => True).
Proof.
  split; [|split; auto].
  - intros id o vs w e rop rs Ca Cm Re Rr _. destruct (is_call _ _ _ Ca) as [-> [-> [a [b [-> [Ha
      Hb]]]]]]. apply run_of_identity in Cm. subst e. rewrite call_echoes by auto.
    destruct Re as [B [EB [_ [_ [_ ->]]]]]. inversion EB; subst B. reflexivity.
  - intros id o vs w Ca _. destruct (is_call _ _ _ Ca) as [-> [-> [a [b [-> [Ha Hb]]]]]].
    exists (start_id [a; b] w), return_, [a; b]. split; [constructor|].
    split; [apply result_of_identity|]. split; [reflexivity|].
    intros [|[|n]] c Q; simpl in Q; [| |now destruct n]; inversion Q; subst; assumption.
Qed.
(** The checks accept the copy, and the code of the versions. *)
Theorem echo_copied : chk_copy L callee returns body_copied the_copy = true /\
  good_code L M body_copied /\ forall id, id < 2 -> good_code L M (orig the_copy id).
Proof.
  split; [vm_compute; reflexivity|].
  assert (Rh: forall T, RulesHold L M T) by (intro T; apply rules_hold, echo_right).
  split; [split; [apply Rh|split; vm_compute; reflexivity]|].
  intros [|[|id]] Li; [| |lia]; (split; [apply Rh|split; vm_compute; reflexivity]).
Qed.
End Echo.
Print Assumptions echo_right.
Print Assumptions calls_echo.
Print Assumptions echo_copied.

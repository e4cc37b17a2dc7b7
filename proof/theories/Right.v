(** The theorem about Osier's operations: [osier_right] and [osier_journey]. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Places Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Walk Owed Matched Landing Real Journey Integers Bytes.
From Osier Require Import Operations Meaning Concrete.
From Osier Require Import Matching Instance Copy Across Into Frames Out.

Section Right.
Context {W : Type} (X : machine W) (run : fcode -> list Z -> option Z).
Notation L := (rule_lang run).
Notation M := (osier_sem X).
Hypothesis floats : FloatsFold run X.
Hypothesis sizes : SizesGrow X.
Variable least : nat -> Z.
Hypothesis begins : SizesLeast least X.
Lemma faithful : Faithful L M.
Proof. now apply osier_faithful. Qed.
Lemma trap_faithful : TrapFaithful (osier_traps least) M (halts X).
Proof. now apply (osier_trap_faithful X). Qed.

Variables (T : table code citation) (anch : nat -> bool) (p q : version code) (K : claims).
Variables (Y : owing) (past ahead : nat -> bool) (need armed : nat -> nat -> set).
Notation calm := (calm L M T (halts X) anch nowhere).
Notation start := (start M T).
Hypothesis pair_ok : accept_pair L T anch p q K may_trap past ahead need armed = true.
Hypothesis traps_ok : chk_traps L T (osier_traps least) anch p q K Y = true.
Variables (args : list value) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
(** As [real_right], for the operations of Osier. Three hypotheses are left: the judge folds floats
    as the machine computes them, memories and tables never shrink, and memories have the pages that
    their declarations give at least. Calls are functions of operands and world. *)
Theorem osier_right (E : entry code) here_by far_by sp :
  accept_entry L T anch p q K past ahead need E = true ->
  chk_fire L T (osier_traps least) anch p q K E here_by far_by = true ->
  chk_passed L T (osier_traps least) anch p q K Y E = true ->
  calm p (start p args w) sp -> (sb sp, sk sp) = src E ->
  exists sq, calm q (start q args w) sq /\ (sb sq, sk sq) = tgt E /\
    sw sq = sw sp /\ str sq = str sp /\
    forall env junk, (forall x, mem x (requires E) = true -> env x = se sp x) ->
    let t := with_env sq (fired M E env junk) in
    steps_pass M (halts X) env (steps E) [] (sw sp) /\
    (forall x o, get x (assigns E) = Some o -> se t x = se sq x) /\
    (forall sp', calm p sp sp' -> exists t', calm q t t' /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, calm p sp sp' -> result p sp' o vs ->
      exists t', calm q t t' /\ result q t' o vs /\ sw t' = sw sp' /\ str t' = str sp') /\
    (forall sp' o vs, calm p sp sp' -> Traps.traps (halts X) p sp' o vs ->
      exists t' vs', calm q t t' /\ Traps.traps (halts X) q t' o vs' /\
        alike (osier_traps least) o vs vs' /\ sw t' = sw sp' /\ str t' = str sp').
Proof.
  apply (real_right L M T (osier_traps least) (halts X) anch p q K Y past ahead need armed
    faithful (rules_hold X run T floats) trap_faithful pair_ok traps_ok args w args_ok args_ty).
Qed.
End Right.
(** As [journey_real], for the operations of Osier: certificates that the checks accept are good, so
    that a journey along them is right. *)
Theorem osier_good {W} (X : machine W) run (c : @cert code citation) : FloatsFold run X ->
  accept_pair (rule_lang run) (ct c) (canch c) (cp c) (cq c) (ck c) may_trap (cpast c) (cahead c)
    (cneed c) (carmed c) = true ->
  good (rule_lang run) (osier_sem X) may_trap c.
Proof. intros Fl Pr. split; [now apply rules_hold|exact Pr]. Qed.
Theorem osier_journey {W} (X : machine W) run least args w (c : cert) t :
  FloatsFold run X -> SizesGrow X -> SizesLeast least X ->
  real_journey (rule_lang run) (osier_sem X) (osier_traps least) (halts X) args w c t ->
  length args = arity (cq c) /\ args_typed (osier_sem X) (ct c) args /\
  exists s, calm (rule_lang run) (osier_sem X) (ct c) (halts X) (canch c) nowhere (cq c)
    (start (osier_sem X) (ct c) (cq c) args w) s /\ Alike (cneed c) s t.
Proof.
  intros Fl Sz Bg J. apply (journey_real (rule_lang run) (osier_sem X) (osier_traps least) (halts X)
    (osier_faithful X run _ Fl) (osier_trap_faithful X least Sz Bg)) in J. tauto.
Qed.
(** The theorems about inlined code, for the operations of Osier. *)
Definition osier_into {W} (X : machine W) run callee returns (Fl : FloatsFold run X)
  (Sz : SizesGrow X) least (Bg : SizesLeast least X) :=
  into_right (rule_lang run) (osier_sem X) (osier_traps least) (halts X) callee returns
    (osier_faithful X run _ Fl) (osier_trap_faithful X least Sz Bg).
Definition osier_out {W} (X : machine W) run callee returns landings K (Fl : FloatsFold run X)
  (Sz : SizesGrow X) least (Bg : SizesLeast least X) :=
  out_right (rule_lang run) (osier_sem X) (osier_traps least) (halts X) callee returns landings K
    (osier_faithful X run _ Fl) (osier_trap_faithful X least Sz Bg).

(** ** Worlds of a run

    [SizesLeast] speaks of all worlds, and a run needs it of its first world alone. The machine
    [raised] has the pages in every world. In the worlds of such a run it is the same machine, since
    memories never shrink: operations have the same meaning, and trap alike. *)
Definition raised {W} (least : nat -> Z) (X : machine W) : machine W := {|
  float := float X;
  float_traps := float_traps X;
  pure := pure X;
  reading := reading X;
  words := words X;
  act := act X;
  pages := fun w m => Z.max (least m) (pages X w m);
  entries := entries X;
  owned := owned X
|}.
Theorem raised_right {W} least (X : machine W) : SizesGrow X ->
  SizesGrow (raised least X) /\ SizesLeast least (raised least X) /\
  osier_sem (raised least X) = osier_sem X /\
  forall w, (forall m, least m <= pages X w m)%Z ->
    (forall o vs, halts (raised least X) o vs w = halts X o vs w) /\
    forall o vs m, (least m <= pages X (fst (effsem (osier_sem X) o vs w)) m)%Z.
Proof.
  intro G. split; [|split; [|split; [reflexivity|]]].
  - constructor; simpl.
    + intros f vs w m. pose proof (pages_grow _ G f vs w m). lia.
    + apply (entries_grow _ G).
    + apply (owned_stays _ G).
  - intros w m. simpl. lia.
  - intros w B. split.
    + assert (O: forall a n x, out_of_bounds (raised least X) a n x w = out_of_bounds X a n x w).
      { intros [m off h] n x. simpl. destruct h; auto. rewrite Z.max_r by auto. reflexivity. }
      intros o vs. destruct o; auto; apply O.
    + intros o vs m. destruct o; try apply B. simpl.
      pose proof (pages_grow _ G name vs w m). specialize (B m). lia.
Qed.

(** The hypotheses do not contradict each other, whatever the judge folds: a machine satisfies them.
    Its effects do nothing, and it has one page of each memory. *)
Definition idle (run : fcode -> list Z -> option Z) : machine unit := {|
  float := fun f xs => match run f xs with Some z => z | None => 0%Z end;
  float_traps := fun _ _ => false;
  pure := fun _ _ => 0%Z;
  reading := fun _ _ => 0%Z;
  words := fun _ x _ => x;
  act := fun _ _ w => (w, []);
  pages := fun _ _ => 1%Z;
  entries := fun _ _ => 0%Z;
  owned := fun _ _ _ => false
|}.
Theorem idle_right run : FloatsFold run (idle run) /\ SizesGrow (idle run) /\
  SizesLeast (fun _ => 1%Z) (idle run).
Proof.
  split; [intros f xs z H; simpl; now rewrite H|]. split; [|intros w m; simpl; lia].
  constructor; simpl; auto; intros; lia.
Qed.
(** Little endian, within the memory that was written, and not beyond its page. *)
Example idle_stores run : let X := idle run in let a := Addr 0 4 false in
  let m := operate X (Store I32 4 a) [VBits 8; VBits 0x01020304; VMem []] in
  operate X (Load I8 1 false a) [VBits 8; m] = VBits 4 /\
  operate X (Load I32 2 true a) [VBits 10; m] = VBits 0x0102 /\
  operate X (Load I32 4 false a) [VBits 12; m] = VBits 0 /\
  halts X (Load I32 4 false a) [VBits 65528; m] tt = false /\
  halts X (Load I32 4 false a) [VBits 65529; m] tt = true /\
  operate X (Binary BSdiv I8) [VBits 249; VBits 2] = VBits 253 /\
  halts X (Binary BSdiv I8) [VBits 128; VBits 255] tt = true.
Proof. vm_compute. repeat split. Qed.
Print Assumptions osier_right.
Print Assumptions osier_journey.
Print Assumptions rules_hold.
Print Assumptions osier_into.
Print Assumptions osier_out.
Print Assumptions raised_right.
Print Assumptions idle_right.

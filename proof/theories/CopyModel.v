(** A model of the hypotheses about calls: they do not contradict each other, and the theorems about
    copies apply.

    [f(x) = add(x, x)], and [add(a, b) = a + b]. A copy of [f] has the code of [add] in the place of
    the call. A call of [add] is an effect of the model of Model.v that gives the sum. *)
From Coq Require Import List Arith ZArith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Pair Entry Clean Main Hops Traps Walk
  Owed.
From Osier Require Import Matched Landing Real Journey Copy Across Into Frames Out Model.
Local Open Scope Z_scope.

Definition calling : Sem Z code cell (list (list cell)) := {|
  typed := has_type; dflt := dflt model; val := Int; opsem := operate;
  effsem := fun o vs w =>
    match o with OAdd => (w, [operate OAdd vs]) | _ => effsem model o vs w end;
  choose := choose model; num := number; norm := norm model; look := seen
|}.
Lemma calling_faithful : Faithful model_lang calling.
Proof.
  pose proof model_faithful as Fm. constructor; try (apply Fm; fail).
  intros o vs w n d Hd. destruct o; try (now apply (eff_typed _ _ Fm)).
  destruct n as [|[|n]]; simpl; auto. apply Z.mod_pos_bound. reflexivity.
Qed.
Lemma calling_traps : TrapFaithful model_traps calling model_halt.
Proof.
  destruct model_trap_faithful as [A B D E _]. constructor; auto.
Qed.
Lemma calling_rules T : RulesHold model_lang calling T.
Proof. intros r t Ok Q. discriminate. Qed.
Definition callee_of (o : code) : option nat := match o with OAdd => Some 1%nat | _ => None end.
Definition ends_run (o : code) : bool := code_eqb o OJump.

(** ** The versions, with the table of each: values, blocks and terms have small numbers *)
Definition i0 : term code unit := Term (KArg 0) 0 i8 ByItself.
Definition plain (n : nat) (blocks : nat -> blk code) (terms : nat -> nat) (defs : nat -> nat * nat)
  (above : nat -> list nat) : version code := {|
  fn := n; fb := blocks; tm := terms; lv := fun _ => true; doms := above; dl := defs;
  sole := fun b => match b with 0 => None | S a => Some a end%nat; home := fun _ => 9%nat;
  eloc := fun _ => (0, 0)%nat; mreads := fun _ => []; holder := fun x => x |}.
Definition table_f : table code unit := {|
  tn := 2; tg := fun t => match t with 0%nat => i0 | _ => Term (KRes 5 0) 1 i8 ByItself end;
  deps := fun _ => []; mdep := fun _ => [] |}.
Definition f : version code := plain 1
  (fun _ => Blk [0]%nat 1 (fun _ => IEff 5 OAdd [0; 0] [1])%nat (Last 6 OJump [1] [])%nat)
  (fun x => x) (fun x => (0, x)%nat) (fun _ => [0]%nat).
Definition table_add : table code unit := {|
  tn := 3; tg := fun t => match t with
                          | 0%nat => i0
                          | 1%nat => Term (KArg 1) 1 i8 ByItself
                          | _ => Term (KOp OAdd [0; 1]%nat) 2 i8 ByItself end;
  deps := fun _ => [0; 1]%nat; mdep := fun _ => [] |}.
Definition add : version code := plain 1
  (fun _ => Blk [0; 1]%nat 1 (fun _ => IPure 3 2 OAdd [0; 1])%nat (Last 4 OJump [2] [])%nat)
  (fun x => x) (fun x => if Nat.eqb x 2 then (0, 1) else (0, 0))%nat (fun _ => [0]%nat).
Definition table_i : table code unit := {|
  tn := 2; tg := fun t => match t with
                          | 0%nat => i0 | _ => Term (KOp OAdd [0; 0]%nat) 1 i8 ByItself end;
  deps := fun _ => [0]%nat; mdep := fun _ => [] |}.
Definition inlined : version code := plain 3
  (fun b => match b with
            | 0 => Blk [0] 0 (fun _ => IPure 0 0 OAdd []) (Last 10 OJump [] [Edge 1 [0; 0]])
            | 1 => Blk [2; 3] 1 (fun _ => IPure 11 4 OAdd [2; 3]) (Last 12 OJump [] [Edge 2 [4]])
            | _ => Blk [1] 0 (fun _ => IPure 0 0 OAdd []) (Last 6 OJump [1] [])
            end)%nat
  (fun x => match x with 0 | 2 | 3 => 0 | _ => 1 end)%nat
  (fun x => match x with 0 => (0, 0) | 1 => (2, 0) | 4 => (1, 1) | _ => (1, 0) end)%nat
  (fun b => match b with 0 => [0] | 1 => [1; 0] | _ => [2; 1; 0] end)%nat.

(** The certificate of a version with itself. *)
Definition itself (T : table code unit) (v : version code) (anchors : nat -> bool)
  (places : nat -> nat * nat) (leaves : nat -> set) (need : nat -> nat -> set) : @cert code unit :=
  Cert T anchors v v
    (Claims 13 leaves (fun _ => []) anchors (fun _ => false) (fun a => (places a, places a))
       (fun _ => None)) all all need nothing.
Definition one (x : nat) : set := Node Leaf x Leaf.
Definition cert_f := itself table_f f (fun a => Nat.eqb a 5 || Nat.eqb a 6)
  (fun a => if Nat.eqb a 5 then (0, 0) else (0, 1))%nat
  (fun a => if Nat.eqb a 5 then one 0 else Node (one 0) 1 Leaf)
  (fun _ k => match k with 0%nat => one 0 | _ => one 1 end).
Definition cert_add := itself table_add add (fun a => Nat.eqb a 4) (fun _ => (0, 1)%nat)
  (fun _ => Node (one 0) 1 Leaf)
  (fun _ k => match k with 0%nat => Node (one 0) 1 Leaf | _ => one 2 end).
Definition cert_i := itself table_i inlined (fun a => Nat.eqb a 6) (fun _ => (2, 0)%nat)
  (fun _ => one 0)
  (fun b k => match b, k with
              | 0, _ => one 0 | 1, 0 => Node (one 2) 3 Leaf | 1, _ => one 4 | _, _ => one 1
                end)%nat.
Definition nobody (_ : nat) := 0%nat.
(** Nothing of these versions traps, so no operation is owed. *)
Definition nothing_owed : owing := {|
  steps_at_most := 9; by_p := nobody; by_q := nobody; only_p := fun _ => []; only_q := fun _ => [];
  rank := nobody; came := fun _ => []; meets := fun _ => []; known_p := fun _ => [];
  known_q := fun _ => []
|}.
Ltac accepted := split; [apply calling_rules|vm_compute; reflexivity].
Lemma solid_f : good model_lang calling (can_trap model_traps) cert_f.
Proof. accepted. Qed.
Lemma solid_add : good model_lang calling (can_trap model_traps) cert_add.
Proof. accepted. Qed.
Lemma solid_i : good model_lang calling (can_trap model_traps) cert_i.
Proof. accepted. Qed.

(** ** The copy *)
Definition lands (id : nat) : @cert code unit := match id with 0%nat => cert_f | _ => cert_add end.
Definition the_copy : copies code unit := {|
  cn := 2; orig := fun id => code_p (lands id); fnc := fun id => id;
  caller := fun _ => (0, (0, 0))%nat;
  begins := fun b => match b with 0 => (0, (0, 0)) | 1 => (1, (0, 0)) | _ => (0, (0, 1)) end%nat;
  naming := fun id y => match id with 0 => y | _ => 2 + y end%nat;
  owner := fun x => match x with 0 => (0, 0) | 1 => (0, 1) | S (S y) => (1, y) end%nat
|}.
Lemma copy_accepted : chk_copy model_lang callee_of ends_run (code_q cert_i) the_copy = true.
Proof. vm_compute. reflexivity. Qed.
(** A run of [add] is two steps, and no other run returns. *)
Lemma add_runs vs w : let s := start calling table_add add vs w in exists e,
  step1 model_lang calling table_add (canch cert_add) nowhere add s = Some e /\
  calm model_lang calling table_add model_halt (canch cert_add) nowhere add s e /\
  result add e OJump [operate OAdd vs] /\ sw e = w.
Proof.
  intro s. eexists. split; [reflexivity|]. split; [|split; [|reflexivity]].
  - eapply CS; [constructor| |reflexivity]. reflexivity.
  - exists (fb add 0%nat). repeat split. simpl. unfold upd. simpl.
    destruct vs as [|a [|b vs]]; reflexivity.
Qed.
Lemma copy_means : CallsMean model_lang calling model_halt callee_of ends_run the_copy.
Proof.
  intros id o vs w e rop rs [Li [Co _]] Cm Re Rr _. destruct o; try discriminate.
  inversion Co as [Q].
  simpl in Q. subst id. destruct (add_runs vs w) as [s1 [St [_ [R1 W1]]]].
  destruct (calm_first _ _ _ _ _ _ _ _ _ Cm) as [->|[s2 [_ [S2 C2]]]].
  { destruct Re as [B [EB [N _]]]. inversion EB; subst B. discriminate. }
  change (step1 model_lang calling table_add (canch cert_add) nowhere add
    (start calling table_add add vs w) = Some s2) in S2. rewrite St in S2. inversion S2; subst s2.
  destruct (calm_first _ _ _ _ _ _ _ _ _ C2) as [->|[s3 [_ [S3 _]]]].
  - destruct R1 as [B [EB [_ [_ [_ V1]]]]], Re as [B' [EB' [_ [_ [_ V2]]]]].
    assert (B' = B) by (simpl in EB'; congruence). subst B'.
    rewrite V2, W1, <- V1. reflexivity.
  - pose proof (result_stuck model_lang calling table_add (canch cert_add) add _ _ _ R1) as X.
    change (step1 model_lang calling table_add (canch cert_add) nowhere add s1 = Some s3) in S3.
    congruence.
Qed.
Lemma copy_returns :
  CallsReturn model_lang calling model_halt callee_of ends_run the_copy (fun _ => True).
Proof.
  split; auto. intros id o vs w [Li [Co _]] _. destruct o; try discriminate. inversion Co as [Q].
  simpl in Q. subst id. destruct (add_runs vs w) as [e [_ [Cm [Re _]]]].
  exists e, OJump, [operate OAdd vs]. repeat split; auto. intros [|[|n]] c Q; inversion Q; subst.
  exact (Z.mod_pos_bound _ (2 ^ 8) eq_refl).
Qed.

(** ** The theorems apply *)
Definition stays (at_ : nat * nat) (reads : set) (own : map_ operand) : entry code :=
  {| src := at_; tgt := at_; requires := reads; steps := []; assigns := own |}.
Definition keep (x : nat) : map_ operand := MNode MLeaf x (Src x) MLeaf.
Definition at_start : entry code := stays (0, 0)%nat (one 0) (keep 0).
Definition in_add : entry code :=
  stays (1, 0)%nat (Node (one 2) 3 Leaf) (MNode (keep 2) 3 (Src 3) MLeaf).
Definition at_add : entry code :=
  stays (0, 0)%nat (Node (one 0) 1 Leaf) (MNode (keep 0) 1 (Src 1) MLeaf).
(** Out of the code of [add]: an activation of [add], and one of [f] that waits at the call. *)
Definition out_of : fentry code := {|
  fsrc := (1, 0)%nat; freq := Node (one 2) 3 Leaf; fsteps := [];
  frames := [Land (0, 0)%nat (MNode (MNode MLeaf 0 (Src 2) MLeaf) 1 (Src 3) MLeaf) at_add;
             Land (0, 0)%nat MLeaf at_start]
|}.
Lemma into_accepted :
  chk_into_entry model_lang (code_p cert_i) the_copy at_start at_start at_start (fun _ => []) =
    true.
Proof. vm_compute. reflexivity. Qed.
Lemma out_accepted :
  chk_out_entry model_lang lands the_copy in_add out_of (fun _ => []) = true.
Proof. vm_compute. reflexivity. Qed.
Lemma fire_start c : c = cert_f \/ c = cert_i -> fires model_lang model_traps c at_start.
Proof.
  intros [-> | ->]; (split; [vm_compute; reflexivity|exists nothing_owed, nobody, nobody;
    vm_compute; auto]).
Qed.
Lemma fire_in_add : fires model_lang model_traps cert_i in_add.
Proof. split; [vm_compute; reflexivity|exists nothing_owed, nobody, nobody; vm_compute; auto]. Qed.
Lemma fire_at_add : fires model_lang model_traps cert_add at_add.
Proof. split; [vm_compute; reflexivity|exists nothing_owed, nobody, nobody; vm_compute; auto]. Qed.

Section Runs.
Variable x : Z.
Hypothesis byte_x : 0 <= x < 256.
Lemma typed_x (T : table code unit) : (forall t n, knd T t = Some (KArg n) -> n = 0%nat /\ tty T t
  = i8) ->
  args_typed calling T [Int x].
Proof. intros Q t n Kt. destruct (Q t n Kt) as [-> ->]. simpl. lia. Qed.
Theorem copies_apply :
  (exists sq, calm model_lang calling table_i model_halt (canch cert_i) nowhere inlined
     (start calling table_i inlined [Int x] []) sq /\ (sb sq, sk sq) = (0, 0)%nat) /\
  (forall sp, calm model_lang calling table_i model_halt (canch cert_i) nowhere inlined
     (start calling table_i inlined [Int x] []) sp -> (sb sp, sk sp) = (1, 0)%nat ->
   exists id t rest, active model_lang calling model_halt callee_of lands the_copy [Int x] [] id t
     rest /\ length rest = 1%nat).
Proof.
  assert (Tf: args_typed calling table_f [Int x]).
  { apply typed_x. intros [|[|t]] n Kt; inversion Kt; subst; auto. }
  assert (Ti: args_typed calling table_i [Int x]).
  { apply typed_x. intros [|[|t]] n Kt; inversion Kt; subst; auto. }
  split.
  - destruct (into_right model_lang calling model_traps model_halt callee_of ends_run
      calling_faithful calling_traps (fun _ => True) cert_f cert_i the_copy at_start at_start
        at_start
      (fun _ => []) [Int x] [] (start calling table_f f [Int x] []) solid_f
      (fire_start _ (or_introl eq_refl)) solid_i (fire_start _ (or_intror eq_refl)))
      as [sq [Cq [Aq _]]]; auto using copy_accepted, into_accepted, copy_means, copy_returns, C0.
    + intros [|[|id]] Li; simpl in Li; [exists cert_f|exists cert_add|lia]; split;
        auto using solid_f, solid_add.
    + exists sq. auto.
  - intros sp Cm At.
    destruct (out_right model_lang calling model_traps model_halt callee_of ends_run lands the_copy
      calling_faithful calling_traps) with (c1 := cert_i) (E1 := in_add) (E := out_of)
      (from_ := fun _ : nat => @nil origin) (args := [Int x]) (w := @nil (list cell)) (sp := sp)
      as [id [t [rest [Ac [_ [Fr _]]]]]];
      auto using solid_i, fire_in_add, copy_accepted, copy_means, out_accepted.
    + intros [|[|id]] Li; simpl in Li; [| |lia]; split; auto using solid_f, solid_add.
    + simpl. auto using fire_at_add, fire_start.
    + exists id, t, rest. split; auto. inversion Fr as [|? ? ? ? _ F2]; subst.
      inversion F2 as [|? ? ? ? _ F3 Q1 Q2]; subst. inversion F3; subst.
      destruct rest as [|? [|]]; simpl in *; try discriminate; auto.
Qed.
End Runs.
Print Assumptions into_right.
Print Assumptions out_right.
Print Assumptions frames_go_on.
Print Assumptions frames_return.
Print Assumptions copies_apply.

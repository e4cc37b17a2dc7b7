(** The theorem of entries into a version with inlined code, across the copy: [into_right]. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Walk Owed Matched Landing Real Journey Copy CopyStep
  Activations Across.

Section Into.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variables (callee : op -> option nat) (returns : op -> bool).
Notation cert := (@cert op R).
Definition code_p (c : cert) : body op R := Body (ct c) (canch c) (cp c).
Definition code_q (c : cert) : body op R := Body (ct c) (canch c) (cq c).
Notation calm c := (Traps.calm L M (ctab c) halt (canc c) nowhere (cver c)).
Notation stepc c := (step1 L M (ctab c) (canc c) nowhere (cver c)).
Notation startc c := (start M (ctab c) (cver c)).

(** ** The check *)
Section Check.
Variables (I : body op R) (K : copies op R).
Variables (E1 E2 E : entry op) (from_ : nat -> list origin).
(** The value of the first original with this name, where it is available at the landing point. *)
Definition named_by (x : nat) : option nat :=
  let (id, y) := owner K x in
  if (id =? 0) && (naming K 0 y =? x) &&
     availb (cver (orig K 0)) y (fst (tgt E1)) (snd (tgt E1)) then Some y else None.
Definition on_copy : next op := NextEntry E2 named_by.
Definition after_copy (j : nat) : option (next op) :=
  match j with 0 => Some on_copy | _ => None end.
(** Whether a block of the copy has a place of the first original. *)
Definition stands (b : nat) (x : nat * nat) : bool :=
  let (id, at_) := begins K b in
  (id =? 0) && (fst at_ =? fst x) && (snd at_ <=? snd x) &&
  match blk_at (cver I) b with Some B => snd x <=? snd at_ + bn B | None => false end.
Definition chk_place : bool :=
  let (B, j) := src E2 in
  (let (id, at_) := begins K B in
   (id =? 0) && (fst at_ =? fst (tgt E1)) && (snd at_ + j =? snd (tgt E1))) &&
  below (fn (cver I)) (fun b => negb (lv (cver I) b) || (b =? B) || negb (stands b (tgt E1))).
Definition chk_into_entry : bool :=
  posb (src E) (src E1) && posb (tgt E) (tgt E2) && chk_place &&
  chk_steps L E1 after_copy (requires E) (steps E) from_ &&
  each (fun x o => match get x (assigns E2) with
                   | Some o2 => is_next E1 (requires E) from_ (length (steps E)) 0
                                  (length (steps E2)) on_copy o o2
                   | None => false end) (assigns E) &&
  each (fun x o => match get x (assigns E) with Some _ => true | None => false end) (assigns E2).
End Check.

Hypothesis F : Faithful L M.
Hypothesis FT : TrapFaithful H M halt.

(** ** States that no code can tell apart *)
Record Ext (s t : st V W) : Prop := {
  ex_b : sb t = sb s; ex_k : sk t = sk s; ex_w : sw t = sw s; ex_e : forall x, se t x = se s x
}.
Lemma ext_map s t l : Ext s t -> map (se t) l = map (se s) l.
Proof. intro E. apply map_ext. apply E. Qed.
Lemma ext_assign s t (l : list (nat * V)) x : Ext s t -> assign l (se t) x = assign l (se s) x.
Proof. intro E. unfold assign. destruct (find _ l) as [[z a]|]; auto. apply E. Qed.
Lemma ext_step c s t s' : Ext s t -> stepc c s = Some s' ->
  exists t', stepc c t = Some t' /\ Ext s' t'.
Proof.
  intros Ex St. pose proof Ex as [Hb Hk Hw He]. unfold step1 in *. rewrite Hb, Hk.
  destruct (blk_at (cver c) (sb s)) as [B|]; [|discriminate]. unfold nowhere in *.
  rewrite andb_false_r in St |- *. destruct (inst_at B (sk s)) as [[i x o a|i o a r]|].
  - inversion St; subst; clear St. eexists. split; [reflexivity|]. constructor; simpl; auto.
    intro y. unfold upd. rewrite (ext_map _ _ a Ex). destruct (y =? x); auto.
  - rewrite (ext_map _ _ a Ex), Hw. destruct (effsem M o (map (se s) a) (sw s)) as [w' rs].
    inversion St; subst; clear St. eexists. split; [reflexivity|]. constructor; simpl; auto.
    intro y. now apply ext_assign.
  - unfold taken in *. rewrite (ext_map _ _ (la (lt B)) Ex).
    destruct (edge_no (les (lt B)) _) as [e|]; [|discriminate]. unfold enter in *.
    destruct (blk_at (cver c) (dst e)) as [B'|]; [|discriminate].
    inversion St; subst; clear St. eexists. split; [reflexivity|]. constructor; simpl; auto.
    intro y. rewrite (ext_map _ _ (ea e) Ex). now apply ext_assign.
Qed.
Lemma ext_passes (v : version op) s t : Ext s t -> passes halt v s -> passes halt v t.
Proof.
  intros Ex Ps. pose proof Ex as [Hb Hk Hw He]. unfold passes in *. rewrite Hb, Hk, Hw.
  destruct (blk_at v (sb s)) as [B|]; auto. destruct (inst_at B (sk s)) as [[i x o a|]|]; auto.
  now rewrite (ext_map _ _ a Ex).
Qed.
Lemma ext_calm c s t s' : Ext s t -> calm c s s' -> exists t', calm c t t' /\ Ext s' t'.
Proof.
  intros Ex Cm. induction Cm as [|s1 s2 Cm [t1 [Ct Et]] Ps St].
  - exists t. split; auto. constructor.
  - destruct (ext_step c _ _ _ Et St) as [t2 [St2 E2]]. exists t2. split; auto.
    eapply CS; eauto. eapply ext_passes; eauto.
Qed.
Lemma ext_result (v : version op) s t o vs : Ext s t -> result v s o vs -> result v t o vs.
Proof.
  intros Ex [B [E [N [Nil [Lo Vs]]]]]. exists B. rewrite (ex_b _ _ Ex), (ex_k _ _ Ex).
  rewrite (ext_map _ _ _ Ex). auto.
Qed.
Lemma ext_traps (v : version op) s t o vs : Ext s t -> traps halt v s o vs -> traps halt v t o vs.
Proof.
  intros Ex [B [i [x [y [E [N [Vs Ht]]]]]]]. exists B, i, x, y.
  rewrite (ex_b _ _ Ex), (ex_k _ _ Ex), (ex_w _ _ Ex), (ext_map _ _ _ Ex). auto.
Qed.

Notation good := (good L M (can_trap H)).
Notation fires := (fires L H).
Lemma good_q c : good c -> good_code L M (code_q c).
Proof.
  intros [Rl Ok]. pose proof (chk_pair_ok L (ct c) H _ _ _ _ _ _ _ _ Ok) as Pr.
  split; auto. split; [eapply table_ok; eauto|eapply okq; eauto].
Qed.
Lemma good_p c : good c -> good_code L M (code_p c).
Proof.
  intros [Rl Ok]. pose proof (chk_pair_ok L (ct c) H _ _ _ _ _ _ _ _ Ok) as Pr.
  split; auto. split; [eapply table_ok; eauto|eapply okp; eauto].
Qed.

Lemma alike_trans o (a b c : list V) : alike H o a b -> alike H o b c -> alike H o a c.
Proof.
  intros [->|[n [Vn [Fn Ln]]]] [->|[m [Vm [Fm Lm]]]]; unfold alike; eauto.
  right. exists n. assert (m = n) by congruence. subst m. split; auto. split; congruence.
Qed.

(** [c1] is a certificate from the version p to the original of a copy, [c2] one from the copy to a
    version q. The others in [orig] are versions of the functions whose calls the copy has inlined.

    Let p come to the source point without a trap, in a world in which all calls of these functions
    have returned. No step of the entry traps. Then q, started on the same input, comes to the
    landing point without a trap, in the same world. The entry gives every value that it provides
    the contents that it has there. From the fired state, q goes on as p does: through the same
    worlds, as long as such calls return, to the same result or the same trap. A store that traps
    may have another value to store. *)
Theorem into_right (fair : W -> Prop) (c1 c2 : cert) K (E1 E2 E : entry op) from_ args w sp :
  good c1 -> fires c1 E1 -> good c2 -> fires c2 E2 ->
  (forall id, id < cn K -> exists c, good c /\ (orig K id = code_q c \/ orig K id = code_p c)) ->
    orig K 0 = code_q c1 ->
  chk_copy L callee returns (code_p c2) K = true ->
  chk_into_entry (code_p c2) K E1 E2 E from_ = true ->
  CallsMean L M halt callee returns K -> CallsReturn L M halt callee returns K fair ->
  length args = arity (cp c1) -> args_typed M (ct c1) args -> args_typed M (ct c2) args ->
  calm (code_p c1) (startc (code_p c1) args w) sp -> (sb sp, sk sp) = src E -> fair (sw sp) ->
  exists sq, calm (code_q c2) (startc (code_q c2) args w) sq /\ (sb sq, sk sq) = tgt E /\
    sw sq = sw sp /\
    forall env junk, (forall x, mem x (requires E) = true -> env x = se sp x) ->
    let t := with_env sq (fired M E env junk) in
    steps_pass M halt env (steps E) [] (sw sp) /\
    (forall x o, get x (assigns E) = Some o -> se t x = se sq x) /\
    (forall sp', calm (code_p c1) sp sp' -> fair (sw sp') -> exists t', calm (code_q c2) t t' /\
      sw t' = sw sp') /\
    (forall sp' o vs, calm (code_p c1) sp sp' -> fair (sw sp') -> result (cp c1) sp' o vs ->
      exists t', calm (code_q c2) t t' /\ result (cq c2) t' o vs /\ sw t' = sw sp') /\
    (forall sp' o vs, calm (code_p c1) sp sp' -> fair (sw sp') -> traps halt (cp c1) sp' o vs ->
      exists t' vs', calm (code_q c2) t t' /\ traps halt (cq c2) t' o vs' /\ alike H o vs vs' /\
        sw t' = sw sp').
Proof.
  intros S1 [A1 [X1 [h1 [f1 [Tr1 [P1 Y1]]]]]] S2 [A2 [X2 [h2 [f2 [Tr2 [P2 Y2]]]]]] Or O0 Cp Ci Mean
    Ret Len Ta1 Ta2 Cm At Fa.
  pose proof S1 as [Rl1 Ok1]. pose proof S2 as [Rl2 Ok2].
  pose proof (chk_pair_ok L (ct c1) H _ _ _ _ _ _ _ _ Ok1) as Pr1.
  pose proof (chk_pair_ok L (ct c2) H _ _ _ _ _ _ _ _ Ok2) as Pr2.
  unfold chk_into_entry in Ci. apply andb_true_iff in Ci. destruct Ci as [Ci Dom].
  apply andb_true_iff in Ci. destruct Ci as [Ci As]. apply andb_true_iff in Ci.
  destruct Ci as [Ci Stp]. apply andb_true_iff in Ci. destruct Ci as [Ci Pl].
  apply andb_true_iff in Ci. destruct Ci as [Src Tgt]. apply posb_ok in Src, Tgt.
  rewrite Src in At. rewrite Tgt.
  assert (Gor: forall id, id < cn K -> good_code L M (orig K id)).
  { intros id Li. destruct (Or id Li) as [c [Sc [->| ->]]]; [now apply good_q|now apply good_p]. }
  pose proof (good_p _ S2) as GI.
  assert (Len0: length args = arity (cver (orig K 0))) by (rewrite O0; eapply args_okq; eauto).
  assert (Len2: length args = arity (cp c2)).
  { destruct (start_parts L callee returns (code_p c2) K Cp) as [_ [_ [B [B0 [EB [EB0 Ow]]]]]].
    destruct (owns_ok K _ _ _ Ow) as [Q _]. unfold arity, params0 in Len0 |- *.
    rewrite EB0 in Len0. simpl in EB. rewrite EB, Q, map_length. exact Len0. }
  (* The original of the copy. *)
  destruct (real_right L M (ct c1) H halt (canch c1) (cp c1) (cq c1) (ck c1) X1 (cpast c1)
    (cahead c1) (cneed c1) (carmed c1) F Rl1 FT Ok1 Tr1 args w Len Ta1 E1 h1 f1 sp A1 Y1 P1 Cm At)
    as [s1 [Cs1 [As1 [Ew1 [_ Right1]]]]].
  destruct (Right1 (se sp) (se s1) (fun x _ => eq_refl)) as [Sp1 [Pv1 [On1 [Rs1 Tr1']]]].
  set (t1 := with_env s1 (fired M E1 (se sp) (se s1))) in *.
  assert (Ex1: Ext t1 s1).
  { constructor; auto. intro x. simpl. unfold fired.
    destruct (get x (assigns E1)) as [o|] eqn:Gx; auto. symmetry. rewrite <- (Pv1 _ _ Gx). simpl.
    unfold fired. now rewrite Gx. }
  (* The copy. *)
  pose proof (matched_start L M callee returns (code_p c2) K F GI Gor Cp args w Len0) as Ms.
  rewrite O0 in Ms. specialize (Ms Ta1 Ta2).
  assert (Cs1': calm (orig K 0) (startc (orig K 0) args w) s1) by (rewrite O0; exact Cs1).
  assert (Fa1: fair (sw s1)) by (now rewrite Ew1).
  rewrite <- O0 in Ms.
  destruct (copy_in L M halt callee returns (code_p c2) K F GI Gor Cp Mean fair Ret (cn K) 0 _ _ s1
    (Nat.le_sub_l _ _) Ms Cs1' Fa1) as [si [Ci [Mi _]]].
  assert (Ati: (sb si, sk si) = src E2).
  { unfold chk_place in Pl. destruct (src E2) as [B j]. apply andb_true_iff in Pl.
    destruct Pl as [Pb Pu]. destruct (begins K B) as [id at_] eqn:Bg. bools. subst id.
    destruct Mi as [_ [k [Bi Ki]] _ _ Ii _]. destruct (inv_at _ _ _ _ _ Ii) as [Bk [EBk Kk]].
    pose proof (below_ok _ _ Pu _ (blk_lt _ _ _ EBk)) as U. simpl in U, EBk.
    pose proof (inv_live _ _ _ _ _ Ii) as Lvi. simpl in Lvi. rewrite Lvi in U. simpl in U.
    assert (Q1: fst (tgt E1) = sb s1 /\ snd (tgt E1) = sk s1) by (rewrite <- As1; auto).
    destruct Q1 as [Q1 Q2]. destruct (sb si =? B) eqn:Z.
    - apply Nat.eqb_eq in Z. subst B. rewrite Bi in Bg. inversion Bg; subst at_. simpl in *.
      f_equal. lia.
    - exfalso. simpl in U. unfold stands in U. simpl in U. rewrite Bi, EBk in U. simpl in U.
      rewrite Q1, Q2, Ki, Nat.eqb_refl in U. simpl in U. apply negb_true_iff in U.
      apply andb_false_iff in U. destruct U as [U|U]; apply Nat.leb_gt in U; lia. }
  (* The version that it was optimized to. *)
  destruct (real_right L M (ct c2) H halt (canch c2) (cp c2) (cq c2) (ck c2) X2 (cpast c2)
    (cahead c2) (cneed c2) (carmed c2) F Rl2 FT Ok2 Tr2 args w Len2 Ta2 E2 h2 f2 si A2 Y2 P2 Ci Ati)
    as [sq [Csq [Asq [Ew2 [_ Right2]]]]].
  exists sq. split; auto. split; auto.
  split; [rewrite Ew2, (mt_w Mi); exact Ew1|].
  intros env junk Henv t.
  destruct (Right2 (se si) (fired M E env junk) (fun x _ => eq_refl))
    as [Sp2 [Pv2 [On2 [Rs2 Tr2']]]].
  set (t2 := with_env sq (fired M E2 (se si) (fired M E env junk))) in *.
  assert (Given: forall j N y x o, after_copy K E1 E2 j = Some N -> given N y = Some x ->
    get x (assigns E1) = Some o -> fire M E1 (se sp) o = se si y).
  { intros [|j] N y x o Nj Gy Gx; [|discriminate]. inversion Nj; subst N. simpl in Gy.
    unfold named_by in Gy. destruct (owner K y) as [id z] eqn:Oy.
    destruct ((id =? 0) && (naming K 0 z =? y) && _) eqn:Z; [|discriminate]. inversion Gy; subst z.
    apply andb_true_iff in Z. destruct Z as [Z Av]. apply andb_true_iff in Z. destruct Z as [_ Nx].
    apply Nat.eqb_eq in Nx. rewrite <- As1 in Av. simpl in Av.
    destruct (mt_rel Mi x Av) as [_ Q]. rewrite <- Nx, <- Q, <- (Pv1 _ _ Gx). simpl.
    unfold fired. now rewrite Gx. }
  assert (Comp: forall x o o2, get x (assigns E) = Some o -> get x (assigns E2) = Some o2 ->
    fire M E env o = fire M E2 (se si) o2).
  { intros x o o2 Gx Gx2. pose proof (each_ok _ _ _ _ As Gx) as Q. simpl in Q. rewrite Gx2 in Q.
    exact (composed L M E1 (after_copy K E1 E2) (requires E) (steps E) from_ F Stp env (se sp)
      (fun _ => se si) Henv Given 0 (on_copy K E1 E2) o o2 eq_refl Q). }
  assert (Ex2: Ext t2 t).
  { constructor; auto. intro x. simpl. unfold fired at 1 2.
    destruct (get x (assigns E)) as [o|] eqn:Gx.
    - destruct (get x (assigns E2)) as [o2|] eqn:Gx2; [eapply Comp; eauto|].
      unfold fired. now rewrite Gx.
    - destruct (get x (assigns E2)) as [o2|] eqn:Gx2.
      + pose proof (each_ok _ _ _ _ Dom Gx2) as Q. simpl in Q. now rewrite Gx in Q.
      + unfold fired. now rewrite Gx. }
  assert (Wi: sw si = sw sp) by (rewrite (mt_w Mi); exact Ew1).
  assert (Later: forall u1', calm (code_q c1) t1 u1' -> fair (sw u1') -> exists s1' si',
    Ext u1' s1' /\ calm (code_p c2) si si' /\ Matched L M (code_p c2) K 0 s1' si').
  { intros u1' Cu Fu. destruct (ext_calm (code_q c1) _ _ _ Ex1 Cu) as [s1' [Cs Es]].
    rewrite <- O0 in Cs.
    destruct (copy_in L M halt callee returns (code_p c2) K F GI Gor Cp Mean fair Ret (cn K) 0 _ _
      s1' (Nat.le_sub_l _ _) Mi Cs) as [si' [Csi [Msi _]]]; [now rewrite (ex_w _ _ Es)|].
    exists s1', si'. auto. }
  split; [|split; [|split; [|split]]].
  - eapply (composed_pass L M halt E1 (after_copy K E1 E2) (requires E) (steps E) from_ F Stp env
      (se sp) (fun _ => se si) Henv Given); eauto.
    intros [|j] N Nj; [|discriminate]. inversion Nj; subst N. simpl. now rewrite <- Wi.
  - intros x o Gx. rewrite (ex_e _ _ Ex2). pose proof (each_ok _ _ _ _ As Gx) as Q. simpl in Q.
    destruct (get x (assigns E2)) as [o2|] eqn:Gx2; [|discriminate]. eapply Pv2; eauto.
  - intros sp' Cp' Fp'. destruct (On1 sp' Cp') as [u1' [Cu [Wu _]]].
    destruct (Later u1' Cu) as [s1' [si' [Es [Csi Msi]]]]; [now rewrite Wu|].
    destruct (On2 si' Csi) as [t2' [Ct [Wt _]]].
    destruct (ext_calm (code_q c2) _ _ _ Ex2 Ct) as [t' [Ct' Et]]. exists t'. split; auto.
    rewrite (ex_w _ _ Et), Wt, (mt_w Msi), (ex_w _ _ Es). exact Wu.
  - intros sp' o vs Cp' Fp' Rp. destruct (Rs1 sp' o vs Cp' Rp) as [u1' [Cu [Ru [Wu _]]]].
    destruct (Later u1' Cu) as [s1' [si' [Es [Csi Msi]]]]; [now rewrite Wu|].
    pose proof (ext_result _ _ _ _ _ Es Ru) as R1.
    assert (Ri: result (cp c2) si' o vs).
    { assert (R0: result (cver (orig K 0)) s1' o vs) by (now rewrite O0).
      pose proof (result_stuck L M (ctab (orig K 0)) (canc (orig K 0)) _ _ _ _ R0) as Stuck.
      destruct (kind_of L M halt callee returns (code_p c2) K F GI Gor Cp _ _ _ Msi) as
        [s' t' Z0 _ _ _ _ _|_ _ En|B0 i o0 a r id' t' _ _ _ EB N0 _ _ _ _ _ _ _
        |c B0 i o0 a r rop rs t' Lt _ _ _ _ _ _ _ _ _ _].
      - congruence.
      - now destruct (En _ _ R0).
      - exfalso. destruct R0 as [B1 [E1' [N1 _]]]. rewrite EB in E1'. inversion E1'; subst.
        congruence.
      - lia. }
    destruct (Rs2 si' o vs Csi Ri) as [t2' [Ct [Rt [Wt _]]]].
    destruct (ext_calm (code_q c2) _ _ _ Ex2 Ct) as [t' [Ct' Et]]. exists t'. split; auto.
    split; [eapply ext_result; eauto|].
    rewrite (ex_w _ _ Et), Wt, (mt_w Msi), (ex_w _ _ Es). exact Wu.
  - intros sp' o vs Cp' Fp' Rp.
    destruct (Tr1' sp' o vs Cp' Rp) as [u1' [vs1 [Cu [Ru [Al1 [Wu _]]]]]].
    destruct (Later u1' Cu) as [s1' [si' [Es [Csi Msi]]]]; [now rewrite Wu|].
    pose proof (ext_traps _ _ _ _ _ Es Ru) as R1.
    assert (Ri: traps halt (cp c2) si' o vs1).
    { assert (R0: traps halt (cver (orig K 0)) s1' o vs1) by (now rewrite O0).
      destruct (kind_of L M halt callee returns (code_p c2) K F GI Gor Cp _ _ _ Msi) as
        [s' t' _ _ _ _ _ Tt|St _ _|B0 i o0 a r id' t' _ _ _ EB N0 _ _ _ _ _ _ _
        |c B0 i o0 a r rop rs t' Lt _ _ _ _ _ _ _ _ _ _].
      - now apply Tt.
      - exfalso. destruct R0 as [B1 [i1 [x1 [y1 [E1' [N1 _]]]]]].
        rewrite (step_c L M _ _ _ E1'), N1 in St. discriminate.
      - exfalso. destruct R0 as [B1 [i1 [x1 [y1 [E1' [N1 _]]]]]]. rewrite EB in E1'.
        inversion E1'; subst. congruence.
      - lia. }
    destruct (Tr2' si' o vs1 Csi Ri) as [t2' [vs2 [Ct [Rt [Al2 [Wt _]]]]]].
    destruct (ext_calm (code_q c2) _ _ _ Ex2 Ct) as [t' [Ct' Et]]. exists t', vs2. split; auto.
    split; [eapply ext_traps; eauto|]. split; [eapply alike_trans; eauto|].
    rewrite (ex_w _ _ Et), Wt, (mt_w Msi), (ex_w _ _ Es). exact Wu.
Qed.
End Into.

(** One step of a copy, and of the activation that it stands for: [kind_of]. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Traps Real Copy.

Section Step.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable halt : op -> list V -> W -> bool.
Variables (callee : op -> option nat) (returns : op -> bool).
Variable I : body op R.
Variable K : copies op R.
Notation ov id := (cver (orig K id)).
Notation ot id := (ctab (orig K id)).
Notation chk_same := (chk_same L K).
Notation chk_way := (chk_way I K).
Notation chk_into := (chk_into callee I K).
Notation chk_back := (chk_back L callee I K).
Notation fits := (fits L M).
Notation calm c := (Traps.calm L M (ctab c) halt (canc c) nowhere (cver c)).
Notation stepc c := (step1 L M (ctab c) (canc c) nowhere (cver c)).
Notation startc c := (start M (ctab c) (cver c)).
Notation Invc c := (Inv L M (ctab c) (cver c)).
Notation rel := (rel K).
Notation only := (only K).
Notation Matched := (Matched L M I K).
Notation good_code := (good_code L M).
Notation at_place_ok := (at_place_ok K).
Notation names_ok := (names_ok K).
Notation owns_ok := (owns_ok K).
Notation names := (names K).
Notation owns := (owns K).
Notation rel_map := (rel_map K).
Notation step_c := (step_c L M).
Notation assigned := (assigned K).
Notation assign_only := (assign_only K).

Hypothesis F : Faithful L M.
Notation inv_c := (inv_c L M F).
Hypothesis good_I : good_code I.
Hypothesis good_orig : forall id, id < cn K -> good_code (orig K id).
Hypothesis copy_ok : chk_copy L callee returns I K = true.
Notation start_parts := (start_parts L callee returns I K copy_ok).
Notation block_parts := (block_parts L M callee returns I K copy_ok).

(** ** One step *)
Inductive Kind (id : nat) (s t : st V W) : Prop :=
(* Both do the same. *)
| Both s' t' : stepc (orig K id) s = Some s' -> stepc I t = Some t' -> Matched id s' t' ->
    only id (se t) (se t') -> (passes halt (ov id) s <-> passes halt (cver I) t) ->
    (forall o vs, traps halt (ov id) s o vs -> traps halt (cver I) t o vs) -> Kind id s t
(* The run ends, and returns no results to an instance. *)
| Ends : stepc (orig K id) s = None -> stepc I t = None ->
    (forall o vs, result (ov id) s o vs -> result (cver I) t o vs /\
      (id = 0 \/ returns o = false)) -> Kind id s t
(* A call of another instance begins. *)
| Calls B0 i o a r id' t' : id < id' -> id' < cn K -> caller K id' = (id, (sb s, sk s)) ->
    blk_at (ov id) (sb s) = Some B0 -> inst_at B0 (sk s) = Some (IEff i o a r) ->
    callee o = Some (fnc K id') -> length (map (se s) a) = arity (ov id') ->
    args_typed M (ot id') (map (se s) a) -> stepc I t = Some t' -> passes halt (cver I) t ->
    Matched id' (startc (orig K id') (map (se s) a) (sw s)) t' -> only id' (se t) (se t') ->
    Kind id s t
(* Such a call returns. *)
| Backs c B0 i o a r rop vs t' : c < id -> caller K id = (c, (fst (snd (caller K id)),
    snd (snd (caller K id)))) -> blk_at (ov c) (fst (snd (caller K id))) = Some B0 ->
    inst_at B0 (snd (snd (caller K id))) = Some (IEff i o a r) -> callee o = Some (fnc K id) ->
    result (ov id) s rop vs -> returns rop = true -> fits o vs -> stepc I t = Some t' ->
    passes halt (cver I) t -> only c (se t) (se t') ->
    (forall u, Invc (orig K c) u -> rel c u (se t) -> (sb u, sk u) = snd (caller K id) ->
      effsem M o (map (se u) a) (sw u) = (sw s, vs) ->
      exists u', stepc (orig K c) u = Some u' /\ Matched c u' t') -> Kind id s t.

Lemma passes_end v (s : st V W) B : blk_at v (sb s) = Some B -> inst_at B (sk s) = None ->
  passes halt v s.
Proof. intros E N. unfold passes. now rewrite E, N. Qed.

Section One.
Variables (id : nat) (s t : st V W) (B B0 : blk op) (k : nat).
Hypothesis mt : Matched id s t.
Hypothesis E : blk_at (cver I) (sb t) = Some B.
Hypothesis E0 : blk_at (ov id) (sb s) = Some B0.
Hypothesis Sk : sk s = k + sk t.
Let good0 : good_code (orig K id) := good_orig id (mt_id mt).
Let inv0 := mt_inv mt.
Let live0 := inv_live _ _ _ _ _ inv0.

Lemma begins_at : begins K (sb t) = (id, (sb s, k)).
Proof. destruct (mt_at mt) as [k' [Bg Q]]. rewrite Bg. repeat f_equal. lia. Qed.
Lemma old_def i y : inst_at B0 (sk s) = Some i -> availb (ov id) y (sb s) (S (sk s)) = true ->
  ~ In y (defs i) -> owner K (naming K id y) = (id, y) /\ se s y = se t (naming K id y).
Proof.
  intros N A NI. destruct good0 as [_ [_ Vk]].
  destruct (avail_back _ _ _ _ _ _ live0 E0 N A) as [Iy|[_ A']]; [contradiction|].
  exact (mt_rel mt y A').
Qed.
Lemma insts_ok i0 : inst_at B0 (sk s) = Some i0 ->
  chk_inst L (ot id) (canc (orig K id)) (ov id) (sb s) (sk s) i0 = true.
Proof.
  destruct good0 as [_ [_ Vk]]. intro N.
  destruct (block_ok _ _ _ _ Vk _ _ live0 E0) as [_ [_ [BI _]]]. auto.
Qed.
Lemma eff_avail i o a r x : inst_at B0 (sk s) = Some (IEff i o a r) -> In x a ->
  availb (ov id) x (sb s) (sk s) = true.
Proof.
  intros N Ix. pose proof (insts_ok _ N) as Ci. simpl in Ci. bools.
  match goal with Z : forallb (fun x => availb _ x _ _) a = true |- _ =>
    rewrite forallb_forall in Z; auto end.
Qed.
Lemma same_inst i i0 : inst_at B (sk t) = Some i -> inst_at B0 (sk s) = Some i0 ->
  chk_same id i i0 = true -> Kind id s t.
Proof.
  intros N N0 Cs. pose proof (insts_ok _ N0) as Ci. pose proof good0 as G0.
  assert (At: exists k, begins K (sb t) = (id, (sb s, k)) /\ S (sk s) = k + S (sk t)).
  { exists k. split; [apply begins_at|lia]. }
  pose proof mt as [Li _ Ew _ It Rl].
  destruct i as [i x o a|i o a r], i0 as [i0 y o0 b|i0 o0 b r0]; try discriminate; unfold chk_same
    in Cs; apply andb_true_iff in Cs; destruct Cs as [Cs Ow]; apply andb_true_iff in Cs;
    destruct Cs as [Eo Nm]; apply (op_eqb_ok _ _ F) in Eo; subst o0; apply names_ok in Nm;
    unfold chk_inst in Ci.
  - apply andb_true_iff in Ci. destruct Ci as [Ci _]. apply andb_true_iff in Ci.
    destruct Ci as [Ci _]. apply andb_true_iff in Ci. destruct Ci as [Ci _].
    rewrite forallb_forall in Ci.
    assert (Ops: map (se t) a = map (se s) b) by (subst a; now apply rel_map).
    eapply Both with (s' := St _ _ _ _ _ _) (t' := St _ _ _ _ _ _).
    + rewrite (step_c _ _ _ E0), N0. reflexivity.
    + rewrite (step_c _ _ _ E), N. reflexivity.
    + constructor; simpl; auto.
      * eapply inv_c; eauto. now rewrite (step_c _ _ _ E0), N0.
      * eapply inv_c; eauto. now rewrite (step_c _ _ _ E), N.
      * intros z A. simpl in A.
        destruct (assigned id [y] [x] [opsem M o (map (se s) b)] (se s) (se t) z Ow eq_refl)
          as [Oz Qz]. { intro NI. now apply (old_def _ _ N0 A). }
        split; auto. simpl. unfold assign in Qz. simpl in Qz. unfold upd.
        rewrite (Nat.eqb_sym z y), Ops, (Nat.eqb_sym (naming K id z) x).
        destruct (y =? z), (x =? naming K id z); auto.
    + simpl. intros z Oz. unfold upd. destruct (z =? x) eqn:Q; auto. exfalso.
      apply Nat.eqb_eq in Q. subst z. destruct (owns_ok _ _ _ Ow) as [Qx Own].
      simpl in Qx. inversion Qx; subst. rewrite Own in Oz by now left. simpl in Oz. auto.
    + unfold passes. rewrite E, E0, N, N0, Ops, Ew. tauto.
    + intros o1 vs [B1 [i1 [x1 [y1 [EB1 [N1 [-> Ht]]]]]]]. rewrite E0 in EB1. inversion EB1; subst
      B1.
      rewrite N0 in N1. inversion N1; subst. exists B, i, x, (map (naming K id) y1).
      rewrite Ew. auto.
  - pose proof (fun x => eff_avail _ _ _ _ x N0) as Av.
    assert (Ops: map (se t) a = map (se s) b) by (subst a; now apply rel_map).
    destruct (owns_ok _ _ _ Ow) as [Qr _].
    assert (Lr: length r = length r0) by (subst r; apply map_length).
    destruct (effsem M o (map (se s) b) (sw s)) as [w' rs] eqn:Es.
    eapply Both with (s' := St _ _ _ _ _ _) (t' := St _ _ _ _ _ _).
    + rewrite (step_c _ _ _ E0), N0, Es. reflexivity.
    + rewrite (step_c _ _ _ E), N, Ops, Ew, Es. reflexivity.
    + constructor; simpl; auto.
      * eapply inv_c; eauto. now rewrite (step_c _ _ _ E0), N0, Es.
      * eapply inv_c; eauto. now rewrite (step_c _ _ _ E), N, Ops, Ew, Es.
      * intros z A. simpl in *. rewrite Lr. apply (assigned id r0 r); auto using pad_len.
        intro NI. now apply (old_def _ _ N0 A).
    + simpl. apply (assign_only id r0 r _ _ Ow).
    + unfold passes. rewrite E, E0, N, N0. tauto.
    + intros o1 vs [B1 [i1 [x1 [y1 [EB1 [N1 _]]]]]]. rewrite E0 in EB1. inversion EB1; subst B1.
      rewrite N0 in N1. discriminate.
Qed.

(** A jump binds the parameters of its block. *)
Lemma single_edge e : les (lt B) = [e] -> inst_at B (sk t) = None -> stepc I t =
  enter (ctab I) (cver I) t e.
Proof.
  intros Le N. rewrite (step_c _ _ _ E), N. unfold taken. rewrite Le. unfold edge_no. simpl.
  destruct (choose M (lo (lt B)) (map (se t) (la (lt B)))) as [|n]; auto. simpl.
  now destruct n.
Qed.
Lemma calls_inst i o a r e : inst_at B (sk t) = None -> inst_at B0 (sk s) = Some (IEff i o a r) ->
  les (lt B) = [e] -> chk_into id (sb s, sk s) o a e = true -> Kind id s t.
Proof.
  intros N N0 Le Ci. unfold chk_into in Ci.
  set (id' := fst (begins K (dst e))) in *.
  apply andb_true_iff in Ci. destruct Ci as [Ci Ty]. apply andb_true_iff in Ci.
  destruct Ci as [Ci Ps]. apply andb_true_iff in Ci. destruct Ci as [Ci Nm].
  apply andb_true_iff in Ci. destruct Ci as [Ci Ce]. apply andb_true_iff in Ci.
  destruct Ci as [Ci Cp]. apply andb_true_iff in Ci. destruct Ci as [Ci Cl].
  apply andb_true_iff in Ci. destruct Ci as [Ci At]. apply andb_true_iff in Ci.
  destruct Ci as [Lt Ln]. apply Nat.ltb_lt in Lt, Ln. apply at_place_ok in At.
  apply Nat.eqb_eq in Cl. apply posb_ok in Cp. apply names_ok in Nm.
  destruct (callee o) as [f|] eqn:Co; [|discriminate]. apply Nat.eqb_eq in Ce. subst f.
  destruct (blk_at (cver I) (dst e)) as [Bd|] eqn:Ed; [|discriminate].
  destruct (blk_at (ov id') 0) as [Bs|] eqn:Es; [|discriminate].
  apply andb_true_iff in Ps. destruct Ps as [Ow Len]. apply Nat.eqb_eq in Len.
  pose proof (fun x => eff_avail _ _ _ _ x N0) as Av.
  pose proof mt as [Li _ Ew _ It Rl]. pose proof (good_orig _ Ln) as G'. pose proof good0 as [_
    [Tk0 _]].
  assert (Ops: map (se t) (ea e) = map (se s) a) by (rewrite Nm; now apply rel_map).
  assert (Ar: length (map (se s) a) = arity (ov id')).
  { unfold arity, params0. now rewrite Es, map_length. }
  assert (Ta: args_typed M (ot id') (map (se s) a)).
  { intros u m Ku. assert (Lu: u < tn (ot id')).
    { unfold knd, at_ in Ku. destruct (u <? tn (ot id')) eqn:Q; [|discriminate].
      now apply Nat.ltb_lt. }
    pose proof (below_ok _ _ Ty _ Lu) as Tu. simpl in Tu. unfold knd, at_ in Ku.
    apply Nat.ltb_lt in Lu. rewrite Lu in Ku. simpl in Ku. inversion Ku as [Ku']. rewrite Ku' in Tu.
    destruct (nth_error a m) as [x|] eqn:Nx.
    - apply Nat.eqb_eq in Tu.
      rewrite (nth_indep _ _ (se s x)) by (rewrite map_length; apply nth_error_Some; congruence).
      rewrite map_nth, (nth_error_nth _ _ _ Nx).
      rewrite (inv_right _ _ _ _ _ inv0) by (apply Av; eapply nth_error_In; eauto).
      unfold tty at 1, at_. rewrite Lu. rewrite <- Tu.
      apply (D_typed L M (ot id) F); [|apply (inv_typed _ _ _ _ _ inv0)].
      unfold chk_table in Tk0. bools. auto.
    - rewrite nth_overflow by (rewrite map_length; now apply nth_error_None).
      apply (dflt_typed _ _ F). }
  assert (Sq: stepc I t = Some (St (dst e) 0 (assign (combine (ps Bd) (map (se t) (ea e))) (se t))
    (sw t) (str t) (bindl (ctab I) (cver I) (dst e) (combine (ps Bd) (map (se t) (ea e))) (ss t)))).
  { rewrite (single_edge _ Le N). unfold enter. now rewrite Ed. }
  eapply Calls with (id' := id'); eauto.
  - rewrite <- Cp. destruct (caller K id'). simpl in *. congruence.
  - eapply passes_end; eauto.
  - constructor; simpl; auto.
    + exists 0. auto.
    + destruct G' as [Rl' [Tk' Vk']]. apply (inv_start L M (ot id') (canc (orig K id'))); auto.
    + eapply inv_c; eauto.
    + intros y A. simpl. unfold start in *. cbn [sb sk se] in *. rewrite Ops.
      unfold params0 in *. rewrite Es in *. apply assigned; auto.
      { rewrite map_length. congruence. }
      intro NI. exfalso. destruct G' as [_ [_ Vk']].
      destruct (avail_def _ _ _ _ A) as [d [p [Dl [Df [Dm Lk]]]]].
      unfold chk_version, chk_first in Vk'. apply andb_true_iff in Vk'. destruct Vk' as [Vk' _].
      apply andb_true_iff in Vk'. destruct Vk' as [Vk' _]. apply andb_true_iff in Vk'.
      destruct Vk' as [Vk' _]. apply andb_true_iff in Vk'. destruct Vk' as [Vk' _].
      apply andb_true_iff in Vk'. destruct Vk' as [_ Dz]. apply nats_eqb_ok in Dz. rewrite Dz in Dm.
      destruct Dm as [<-|[]]. specialize (Lk eq_refl). assert (p = 0) by lia. subst p.
      unfold isdef in Df. rewrite Es in Df. apply inb_In in Df. contradiction.
  - simpl. apply (assign_only id' (ps Bs) (ps Bd) _ _ Ow).
Qed.
Lemma backs_inst e : inst_at B (sk t) = None -> inst_at B0 (sk s) = None -> sk s = bn B0 ->
  returns (lo (lt B0)) = true -> les (lt B) = [e] -> les (lt B0) = [] ->
  chk_back id (la (lt B0)) e = true -> Kind id s t.
Proof.
  intros N N0 Kl Rt Le Nil Cb. unfold chk_back in Cb. destruct (caller K id) as [c [bc kc]] eqn:Cl.
  cbn [fst snd] in Cb.
  apply andb_true_iff in Cb. destruct Cb as [Cb Ps]. apply andb_true_iff in Cb.
  destruct Cb as [Cb Nm]. apply andb_true_iff in Cb. destruct Cb as [Lt At].
  apply Nat.ltb_lt in Lt. apply at_place_ok in At. apply names_ok in Nm.
  destruct (blk_at (ov c) bc) as [Bc|] eqn:Ec; [|discriminate].
  destruct (inst_at Bc kc) as [[|i o a r]|] eqn:Nc; try discriminate.
  destruct (callee o) as [f|] eqn:Co; [|discriminate].
  apply andb_true_iff in Ps. destruct Ps as [Ps Ow]. apply andb_true_iff in Ps.
  destruct Ps as [Ce Ty]. apply Nat.eqb_eq in Ce. subst f.
  destruct (blk_at (cver I) (dst e)) as [Bd|] eqn:Ed; [|discriminate].
  pose proof mt as [Li _ Ew _ It Rl]. pose proof good0 as [_ [Tk0 Vk0]].
  assert (Lc: c < cn K) by lia. pose proof (good_orig _ Lc) as Gc.
  assert (Av: forall y, In y (la (lt B0)) -> availb (ov id) y (sb s) (sk s) = true).
  { intros y Iy. rewrite Kl.
    destruct (block_ok _ _ _ _ Vk0 _ _ live0 E0) as [_ [_ [_ CL]]]. eapply args_avail; eauto. }
  assert (Ft: fits o (map (se s) (la (lt B0)))).
  { intros n v Nv. rewrite nth_error_map in Nv.
    destruct (nth_error (la (lt B0)) n) as [x|] eqn:Nx; [|discriminate].
    simpl in Nv. inversion Nv; subst v.
    assert (Ln: n < length (la (lt B0))) by (apply nth_error_Some; congruence).
    pose proof (below_ok _ _ Ty _ Ln) as Tn. simpl in Tn. apply Nat.eqb_eq in Tn.
    rewrite (nth_error_nth _ _ _ Nx) in Tn. rewrite <- Tn.
    rewrite (inv_right _ _ _ _ _ inv0) by (apply Av; eapply nth_error_In; eauto).
    apply (D_typed L M (ot id) F); [|apply (inv_typed _ _ _ _ _ inv0)].
    unfold chk_table in Tk0. bools. auto. }
  assert (Ops: map (se t) (ea e) = map (se s) (la (lt B0))).
  { rewrite Nm. now apply rel_map. }
  assert (Sq: stepc I t = Some (St (dst e) 0 (assign (combine (ps Bd) (map (se t) (ea e))) (se t))
    (sw t) (str t) (bindl (ctab I) (cver I) (dst e) (combine (ps Bd) (map (se t) (ea e))) (ss t)))).
  { rewrite (single_edge _ Le N). unfold enter. now rewrite Ed. }
  assert (It': Invc I (St (dst e) 0 (assign (combine (ps Bd) (map (se t) (ea e))) (se t))
    (sw t) (str t) (bindl (ctab I) (cver I) (dst e) (combine (ps Bd) (map (se t) (ea e))) (ss t))))
    by (eapply inv_c; eauto).
  assert (Lr: length (map (se s) (la (lt B0))) = length r).
  { rewrite <- Ops, map_length. destruct (owns_ok _ _ _ Ow) as [Q _].
    transitivity (length (ps Bd)); [|rewrite Q; apply map_length].
    destruct good_I as [_ [TkI VkI]].
    destruct (block_ok _ _ _ _ VkI _ _ (inv_live _ _ _ _ _ It) E) as [_ [_ [_ CL]]].
    destruct (inv_at _ _ _ _ _ It) as [B1 [E1 K1]]. rewrite E in E1. inversion E1; subst B1.
    assert (Kt: sk t = bn B) by (apply inst_none in N; lia).
    assert (Tk: taken M (lt B) (se t) = Some e).
    { unfold taken, edge_no. rewrite Le. simpl.
      destruct (choose M (lo (lt B)) (map (se t) (la (lt B)))) as [|n]; auto. simpl. now destruct
        n. }
    destruct (taken_edge L M (ctab I) (canc I) (cver I) F TkI VkI t B e It E Kt Tk) as [_ CE].
    destruct (edge_ok _ _ _ _ _ _ CE) as [B2 [E2 [_ [_ [Q2 _]]]]]. congruence. }
  eapply Backs with (c := c) (vs := map (se s) (la (lt B0))); rewrite ?Cl; simpl; eauto.
  - exists B0. auto.
  - eapply passes_end; eauto.
  - simpl. apply (assign_only c r (ps Bd) _ _ Ow).
  - intros u Iu Ru Au Es. inversion Au; subst bc kc.
    assert (Su: stepc (orig K c) u = Some (St (sb u) (S (sk u))
      (assign (combine r (map (se s) (la (lt B0)))) (se u)) (sw s) (str u ++ [i])
      (bindr (ov c) (combine r (map (se s) (la (lt B0)))) (ss u)))).
    { rewrite (step_c _ _ _ Ec), Nc, Es, <- Lr, pad_all. reflexivity. }
    eexists. split; [exact Su|]. constructor; simpl; auto.
    + exists (S (sk u)). split; [exact At|lia].
    + eapply inv_c; eauto.
    + intros y A. simpl in *. rewrite Ops. apply (assigned c r (ps Bd)); auto.
      intro NI. destruct Gc as [_ [_ Vkc]].
      destruct (avail_back _ _ _ _ _ _ (inv_live _ _ _ _ _ Iu) Ec Nc A) as [Iy|[_ A']];
        [contradiction|]. now apply Ru.
Qed.
Lemma ends_alike : inst_at B (sk t) = None -> inst_at B0 (sk s) = None -> sk s = bn B0 ->
  op_eqb L (lo (lt B)) (lo (lt B0)) = true -> names id (la (lt B0)) (la (lt B)) = true ->
  all2 (chk_way id) (les (lt B)) (les (lt B0)) = true ->
  id = 0 \/ returns (lo (lt B0)) = false -> Kind id s t.
Proof.
  intros N N0 Kl Eo Nm Ws Rt. apply (op_eqb_ok _ _ F) in Eo. apply names_ok in Nm.
  pose proof mt as [Li _ Ew _ It Rl]. pose proof good0 as G0. pose proof good0 as [_ [Tk0 Vk0]].
  destruct (block_ok _ _ _ _ Vk0 _ _ live0 E0) as [_ [_ [_ CL]]].
  assert (Ops: map (se t) (la (lt B)) = map (se s) (la (lt B0))).
  { rewrite Nm. apply rel_map; auto. intros y Iy. rewrite Kl. eapply args_avail; eauto. }
  destruct (taken M (lt B0) (se s)) as [e0|] eqn:T0.
  - assert (Te: exists e, taken M (lt B) (se t) = Some e /\ chk_way id e e0 = true).
    { unfold taken in T0 |- *. rewrite Ops, Eo. clear -T0 Ws.
      revert T0. generalize (choose M (lo (lt B0)) (map (se s) (la (lt B0)))). intros n T0.
      pose proof (all2_len _ _ _ Ws) as Ln.
      destruct (edge_no_some (les (lt B)) n) as [e Te].
      { intro Q. rewrite Q in Ln. destruct (les (lt B0)); [|discriminate]. unfold edge_no in T0.
        simpl in T0. destruct n; discriminate. }
      exists e. split; auto. pose proof (edge_no_pair _ _ _ _ _ Ln Te T0) as P.
      apply edge_no_in in P. clear -P Ws. revert P Ws. generalize (les (lt B0)) (les (lt B)).
      intros l l'. revert l. induction l' as [|x l' IH]; intros [|y l] P W; simpl in *;
        try contradiction. apply andb_true_iff in W. destruct W as [W1 W2].
      destruct P as [Q|P]; [inversion Q; subst; auto|eauto]. }
    destruct Te as [e [Te Cw]]. unfold chk_way in Cw. apply andb_true_iff in Cw.
    destruct Cw as [Cw Ow]. apply andb_true_iff in Cw. destruct Cw as [At Na].
    apply at_place_ok in At. apply names_ok in Na.
    destruct (blk_at (cver I) (dst e)) as [Bd|] eqn:Ed; [|discriminate].
    destruct (blk_at (ov id) (dst e0)) as [Bd0|] eqn:Ed0; [|discriminate].
    destruct (taken_edge L M _ (canc (orig K id)) _ F Tk0 Vk0 s B0 e0 inv0 E0 Kl T0) as [_ CE].
    destruct (edge_ok _ _ _ _ _ _ CE) as [B2 [E2 [_ [_ [Ln [Av _]]]]]].
    rewrite Ed0 in E2. inversion E2; subst B2.
    assert (Opa: map (se t) (ea e) = map (se s) (ea e0)).
    { rewrite Na. apply rel_map; auto. now rewrite Kl. }
    assert (S0: stepc (orig K id) s = enter (ot id) (ov id) s e0).
    { now rewrite (step_c _ _ _ E0), N0, T0. }
    assert (S1: stepc I t = enter (ctab I) (cver I) t e) by now rewrite (step_c _ _ _ E), N, Te.
    unfold enter in S0, S1. rewrite Ed in S1. rewrite Ed0 in S0.
    eapply Both; eauto.
    + constructor; simpl; auto.
      * exists 0. auto.
      * eapply inv_c; eauto.
      * eapply inv_c; eauto using good_I.
      * intros y A. simpl in *. rewrite Opa. apply assigned; auto.
        { rewrite map_length. congruence. }
        intro NI. apply Rl. rewrite Kl. eapply avail_up; eauto.
    + simpl. apply (assign_only id (ps Bd0) (ps Bd) _ _ Ow).
    + unfold passes. rewrite E, E0, N, N0. tauto.
    + intros o1 vs [B1 [i1 [x1 [y1 [EB1 [N1 _]]]]]]. rewrite E0 in EB1. inversion EB1; subst B1.
      rewrite N0 in N1. discriminate.
  - assert (Nil: les (lt B0) = []).
    { unfold taken in T0. destruct (les (lt B0)) as [|x l] eqn:Q; auto. exfalso.
      destruct (edge_no_some (x :: l) (choose M (lo (lt B0)) (map (se s) (la (lt B0)))));
        [discriminate|]. congruence. }
    rewrite Nil in Ws. destruct (les (lt B)) as [|x l] eqn:Le; [|discriminate].
    apply Ends.
    + now rewrite (step_c _ _ _ E0), N0, T0.
    + rewrite (step_c _ _ _ E), N. unfold taken, edge_no. rewrite Le. simpl.
      now destruct (choose M _ _).
    + intros o vs [B1 [EB1 [N1 [_ [Lo Vs]]]]]. rewrite E0 in EB1. inversion EB1; subst B1.
      split; [|now rewrite <- Lo]. exists B. repeat split; auto; congruence.
Qed.
End One.

Lemma kind_of id s t : Matched id s t -> Kind id s t.
Proof.
  intro mt. destruct (block_parts _ _ _ mt) as [B [B0 [k [E [E0 [Le [Sk [Is Ce]]]]]]]].
  destruct (Nat.eq_dec (sk t) (bn B)) as [Q|Q].
  - assert (N: inst_at B (sk t) = None) by (apply inst_none; lia).
    pose proof Sk as Sk0. rewrite Q in Sk. rewrite <- Sk in Ce. unfold chk_end in Ce.
    destruct (inst_at B0 (sk s)) as [[|i o a r]|] eqn:N0; [discriminate| |].
    + destruct (les (lt B)) as [|e [|]] eqn:El; try discriminate.
      eapply calls_inst with (k := k); eauto; lia.
    + assert (Kl: sk s = bn B0).
      { destruct (inv_at _ _ _ _ _ (mt_inv mt)) as [B1 [E1 K1]]. apply inst_none in N0.
        replace B1 with B0 in * by congruence. lia. }
      destruct ((0 <? id) && returns (lo (lt B0))) eqn:Z.
      * apply andb_true_iff in Z. destruct Z as [_ Z].
        destruct (les (lt B)) as [|e [|]] eqn:El; try discriminate.
        apply andb_true_iff in Ce. destruct Ce as [Nil Cb]. apply is_nil_ok in Nil.
        eapply backs_inst; eauto.
      * apply andb_true_iff in Ce. destruct Ce as [Ce Ws]. apply andb_true_iff in Ce.
        destruct Ce as [Eo Nm]. eapply ends_alike; eauto.
        destruct (0 <? id) eqn:Zi; [right; exact Z|left; apply Nat.ltb_ge in Zi; lia].
  - specialize (Is (sk t)). rewrite <- Sk in Is. assert (Lt: sk t < bn B) by lia.
    specialize (Is Lt). destruct (inst_at B (sk t)) as [i|] eqn:N; [|contradiction].
    destruct (inst_at B0 (sk s)) as [i0|] eqn:N0; [|contradiction].
    eapply same_inst with (k := k); eauto.
Qed.

End Step.

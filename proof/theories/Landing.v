(** An entry lands without a trap: the target version has not trapped before the landing point. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean.
From Osier Require Import Traps Walk Owed Matched.

Section Landing.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W) (T : table op R).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variable anch : nat -> bool.
Variables (p q : version op) (K : claims) (X : owing).
Notation stop := (stopped K).
Notation start := (start M T).
Notation nreach := (nreach L M T anch stop).
Notation lists := (lists M T H).
Notation first_trap := (first_trap halt).
Notation walkp := (walk L T H anch p (by_p X) (steps_at_most X)).
Notation walkq := (walk L T H anch q (by_q X) (steps_at_most X)).

(** ** The check of an entry *)
(** What the target version may be ahead by is vouched for by the source version at the source
    point, or stands behind the landing point. *)
Definition chk_passed (E : entry op) : bool :=
  match walkp (fst (src E)) (snd (src E)), walkq (fst (tgt E)) (snd (tgt E)) with
  | Some (lp, ap), Some (lq, aq) =>
    match aid p (fst ap) (snd ap) with
    | Some a =>
      forallb (p_passed T H p q K X a ap lp) (came X a) &&
      forallb (fun y => inb y (map fst lq) || p_passed T H p q K X a ap lp y) (meets X a)
    | None => false
    end
  | _, _ => false
  end.

Hypothesis F : Faithful L M.
Hypothesis rules : RulesHold L M T.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis pair_ok : chk_pair L T anch p q K = true.
Hypothesis traps_ok : chk_traps L T H anch p q K X = true.
Variables (args : list V) (w : W).
Hypothesis args_ok : length args = arity p.
Hypothesis args_ty : args_typed M T args.
Let tok : chk_table L T = true := table_ok L T anch p q K pair_ok.
Let okp : chk_version L T anch p = true := okp L T anch p q K pair_ok.
Let okq : chk_version L T anch q = true := okq L T anch p q K pair_ok.
Let argsq : length args = arity q := args_okq L T anch p q K pair_ok args args_ok.
Notation calm v := (calm L M T halt anch stop v).
Notation startp := (start p args w).
Notation startq := (start q args w).
Notation step v := (step1 L M T anch stop v).

(** Let the source version come to the source point without a trap. Then the target version comes to
    the landing point without a trap, in the same world and after the same effects, and firing gives
    the contents that it has there. *)
Theorem landing_calm (E : entry op) sp : chk_entry L T anch p q K E = true ->
  chk_passed E = true -> calm p startp sp -> (sb sp, sk sp) = src E ->
  exists sq, calm q startq sq /\ (sb sq, sk sq) = tgt E /\ sw sq = sw sp /\ str sq = str sp /\
  (exists a ap aq csp csq ep eq, Landed L M T anch p q K E sp sq a ap aq csp csq ep eq) /\
  forall env, (forall x, mem x (requires E) = true -> env x = se sp x) ->
  forall x o, get x (assigns E) = Some o -> fire M E env o = se sq x.
Proof.
  intros Ce Cd Cm At. unfold chk_passed in Cd.
  destruct (walkp (fst (src E)) (snd (src E))) as [[lp ap]|] eqn:Wp; [|discriminate].
  destruct (walkq (fst (tgt E)) (snd (tgt E))) as [[lq aq]|] eqn:Wq; [|discriminate].
  destruct (aid p (fst ap) (snd ap)) as [a|] eqn:Id; [|discriminate].
  apply andb_true_iff in Cd. destruct Cd as [Cin Cnew]. rewrite forallb_forall in Cin, Cnew.
  destruct (lockstep_calm L M T H halt anch p q K X F rules FT pair_ok traps_ok args w
    args_ok args_ty _ Cm) as [fr [gp [gq [eq [Wy [Ng [Cg Gs]]]]]]].
  pose proof Wy as [G [qp [qq [[Lp Lq Ep Eq St] Ch]]]].
  destruct (gap_sync L M T anch p q K F rules pair_ok args w args_ok args_ty _ _ G)
    as [ep [sq0 [a0 [Np [Nq Sy]]]]].
  pose proof (sy_anchor _ _ _ _ _ _ _ _ _ _ _ _ Sy) as [Anp Anq].
  pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ng Np Anp) as Ns.
  pose proof (calm_reach _ _ _ _ _ _ _ _ _ Cm) as Rp. rewrite <- At in Wp. cbn [fst snd] in Wp.
  destruct (along_p L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sp ep _ _ _
    Rp Ns Anp Wp) as [-> [tp Alp]]. cbn [fst snd] in Id.
  pose proof (sy_id _ _ _ _ _ _ _ _ _ _ _ _ Sy) as Id0. assert (a0 = a) by congruence. subst a0.
  destruct (nreach_same _ _ _ _ _ _ _ _ Ng) as [Wg Tg].
  pose proof (ga_w _ _ _ _ _ _ _ _ _ _ _ G) as Wgq.
  pose proof (ga_q _ _ _ _ _ _ _ _ _ _ _ G) as Rgq.
  pose proof (invq L M T anch p q K F rules pair_ok args w args_ok args_ty _ Rgq) as Igq.
  (* What the check of the ways says. *)
  unfold chk_ways in Ch. cbn [fst snd] in Ch.
  destruct (walkp (sb gp) (sk gp)) as [[wp zp]|] eqn:Wgp; [|discriminate].
  destruct (walkq (sb gq) (sk gq)) as [[wq zq]|] eqn:Wqq; [|discriminate].
  destruct (along_p L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty gp ep _ _ _
    (ga_p _ _ _ _ _ _ _ _ _ _ _ G) Np Anp Wgp) as [-> [tgp Algp]].
  destruct (along_q L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty gq sq0 _ _ _
    Rgq Nq Anq Wqq) as [-> [tgq Algq]].
  cbn [fst snd] in Ch. rewrite Id in Ch.
  repeat (apply andb_true_iff in Ch; let H1 := fresh "Ch" in destruct Ch as [Ch H1]).
  clear Ch Ch0 Ch1 Ch5. rename Ch2 into Cq, Ch3 into Cc, Ch4 into Ndq, Ch6 into Avq.
  rewrite forallb_forall in Cq, Cc, Avq. apply nodupb_ok in Ndq.
  pose proof Algq as [Mq [Lsq _]]. specialize (Lsq qq Ndq Lq).
  assert (Lgq: lists q sq0 qq).
  { intros y o vs I. apply Lsq. apply in_or_app. now left. }
  (* The target version has not trapped where the ways start. *)
  assert (Cgq: calm q startq gq).
  { assert (N0: eq = None).
    { rewrite <- Eq. apply first_none. intros y o vs Iy.
      assert (In y (map fst qq)) by (apply in_map_iff; exists (y, (o, vs)); auto).
      assert (Iy': In y (came X a)) by (apply inb_In; apply Cc; auto).
      rewrite Wgq, <- Wg.
      apply (p_passed_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sp ep
        sq0 a lp tp y o vs qq); auto. apply Avq. apply in_or_app. now left. }
    rewrite N0 in St. exact St. }
  destruct (entry_from L M T anch p q K F rules pair_ok args w args_ok args_ty
    (fun s => calm q startq s \/ nreach q gq s) E sp gp gq)
    as [sq [Rq [Aq [Ew [Et [Ld Right]]]]]]; auto.
  { intros s [Cs|N]; [eapply calm_reach; eauto|eapply nreach_reach; eauto]. }
  { intros s [Cs|N].
    - destruct (calm_came _ _ _ _ _ _ _ _ _ Cs) as [->|[s' [C' S']]]; auto. right. eauto.
    - assert (Z: s = gq \/ exists s', nreach q gq s' /\ step q s' = Some s).
      { clear -N. induction N as [s|s s1 s' A S N IH]; auto. right. destruct IH as [->|[z [Nz Sz]]].
        - exists s. split; auto. constructor.
        - exists z. split; auto. econstructor; eauto. }
      destruct Z as [->|[s' [N' S']]]; [|right; eauto].
      destruct (calm_came _ _ _ _ _ _ _ _ _ Cgq) as [->|[s' [C' S']]]; auto. right. eauto. }
  exists sq. split; [|auto]. destruct Rq as [Cs|Ngs]; auto.
  (* The target version comes to the landing point on this way. *)
  pose proof (nreach_on _ _ _ _ _ _ _ _ _ Ngs Nq Anq) as Nsq.
  destruct (track L M T H halt anch stop q (by_q X) F rules FT tok okq args w argsq args_ty gq sq
    Ngs _ _ _ Igq Wqq) as [m [l1 [l2 [t1 [Wk2 [El [M1 [Ls1 [_ [Cm1 _]]]]]]]]]].
  assert (Rsq: reach L M T anch stop q startq sq) by (eapply nreach_reach; eauto).
  rewrite <- Aq in Wq. cbn [fst snd] in Wq.
  pose proof (walk_same L T H anch q (by_q X) _ _ _ _ _ _ Wk2 Wq) as Q. inversion Q; subst l2 aq.
  destruct (along_q L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sq sq0 _ _ _
    Rsq Nsq Anq Wq) as [_ [t2 Al2]].
  subst wq. rewrite map_app in Ndq.
  assert (Nd1: NoDup (map fst qq ++ map fst l1)).
  { rewrite app_assoc in Ndq. clear -Ndq. induction (map fst qq ++ map fst l1); [constructor|].
    inversion Ndq; subst. constructor; auto. intro I. apply H1. apply in_or_app. now left. }
  specialize (Ls1 qq Nd1 Lq). pose proof Al2 as [M2 [Ls2 _]].
  assert (Lall: lists q sq0 ((qq ++ t1) ++ t2)).
  { apply Ls2; auto. rewrite map_app, M1, <- app_assoc. now apply opens_nodup. }
  assert (N1: first_trap (sw gq) t1 = None).
  { apply first_none. intros y o vs Iy. assert (Iy1: In y (opens l1)).
    { rewrite <- M1. apply in_map_iff. exists (y, (o, vs)). auto. }
    assert (Ay: availb q y (sb sq0) (sk sq0) = true).
    { apply Avq. apply in_or_app. right. rewrite opens_app. apply in_or_app. now left. }
    assert (Il: In (y, (o, vs)) (qq ++ t1)) by (apply in_or_app; now right).
    destruct (is_nil (map fst qp) && p_passed T H p q K X a (sb ep, sk ep) wp y) eqn:Dr.
    - apply andb_true_iff in Dr. destruct Dr as [_ Dr]. rewrite Wgq.
      apply (p_passed_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty gp ep
        sq0 a wp tgp y o vs ((qq ++ t1) ++ t2)); auto. apply in_or_app. now left.
    - assert (Im: In y (meets X a)).
      { apply inb_In, Cq. apply filter_In. rewrite Dr. split; auto. rewrite opens_app.
        apply in_or_app. now left. }
      apply Cnew in Im. apply orb_true_iff in Im. destruct Im as [Im|Im].
      + exfalso. apply inb_In in Im. apply opens_in in Iy1.
        exact (nodup_apart _ _ _ _ Ndq Iy1 Im).
      + rewrite Wgq, <- Wg.
        apply (p_passed_ok L M T H halt anch p q K X F rules FT pair_ok args w args_ok args_ty sp ep
          sq0 a lp tp y o vs ((qq ++ t1) ++ t2)); auto. apply in_or_app. now left. }
  specialize (Cm1 Cgq). rewrite N1 in Cm1. eapply calm_trans; eauto.
Qed.
End Landing.
Print Assumptions landing_calm.

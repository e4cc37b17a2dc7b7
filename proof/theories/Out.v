(** The theorem of entries out of a version with inlined code: [out_right], [frames_go_on] and
    [frames_return]. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Osier Require Import Util Terms Memory Classes Version Sound Paths Pair Entry Clean Live Main.
From Osier Require Import Hops Traps Walk Owed Matched Landing Real Journey Copy CopyStep
  Activations Across Into Frames.

Section Out.
Context {C op R V W : Type} (L : Lang C op R) (M : Sem C op V W).
Variable H : TrapLang C op.
Variable halt : op -> list V -> W -> bool.
Variables (callee : op -> option nat) (returns : op -> bool).
Notation cert := (@cert op R).
Notation calm c := (Traps.calm L M (ctab c) halt (canc c) nowhere (cver c)).
Notation stepc c := (step1 L M (ctab c) (canc c) nowhere (cver c)).
Notation startc c := (start M (ctab c) (cver c)).
Notation good := (good L M (can_trap H)).
Notation fires := (fires L H).
Variable lc : nat -> cert.
Variable K : copies op R.
Notation lq id := (code_q (lc id)).
Notation ov id := (cver (orig K id)).
Notation stack := (stack L M halt callee K).

Hypothesis F : Faithful L M.
Hypothesis FT : TrapFaithful H M halt.
Hypothesis lands_ok : forall id, id < cn K -> good (lc id) /\ orig K id = code_p (lc id).

(** Activations: each but the innermost waits at a call, and the next is a run of the function that
    is called, with the arguments of the call, in the world at the call. *)
Inductive active (args : list V) (w : W) : nat -> st V W -> list (nat * st V W) -> Prop :=
| AOuter t : 0 < cn K -> length args = arity (cq (lc 0)) -> args_typed M (ct (lc 0)) args ->
    calm (lq 0) (startc (lq 0) args w) t -> active args w 0 t []
| AInner id t c u rest B i o a r : active args w c u rest -> id < cn K ->
    fst (caller K id) = c -> blk_at (cq (lc c)) (sb u) = Some B ->
    inst_at B (sk u) = Some (IEff i o a r) -> callee o = Some (fnc K id) ->
    length (map (se u) a) = arity (cq (lc id)) -> args_typed M (ct (lc id)) (map (se u) a) ->
    calm (lq id) (startc (lq id) (map (se u) a) (sw u)) t -> active args w id t ((c, u) :: rest).

(** ** Where the activations of an original land *)
(** An instance, the state of its original, the state where it lands, and its part of the entry. *)
Record landing := Landing { fid : nat; fo : st V W; ft : st V W; ff : land op }.
Section Landing.
Variables (E1 : entry op) (E : fentry op) (from_ : nat -> list origin).
Notation chk_land := (chk_land lc K E1 E from_).
Notation chk_lands := (chk_lands lc K E1 E from_).
Record Lands (env : nat -> V) (w0 : W) (k : nat) (x : landing) : Prop := {
  la_rel : rel K (fid x) (fo x) env;
  la_src : (sb (fo x), sk (fo x)) = src (onward (ff x));
  la_tgt : (sb (ft x), sk (ft x)) = tgt (onward (ff x));
  la_fire : forall y o, get y (assigns (onward (ff x))) = Some o ->
    fire M (onward (ff x)) (se (fo x)) o = se (ft x) y;
  la_pass : steps_pass M halt (se (fo x)) (steps (onward (ff x))) [] w0;
  la_chk : exists at_, chk_land k (fid x) at_ (ff x) = true;
  la_call : 0 < k -> exists B i o a r, blk_at (cq (lc (fid x))) (sb (ft x)) = Some B /\
    inst_at B (sk (ft x)) = Some (IEff i o a r) /\ waits_at lc (fid x) (ff x) = Some r
}.
Fixpoint all_fire (id : nat) (fs : list (land op)) : Prop :=
  match fs with
  | [] => True
  | f :: r => fires (lc id) (onward f) /\ all_fire (fst (caller K id)) r
  end.

Lemma land_any j id args w s f at_ w0 env : id < cn K -> length args = arity (ov id) ->
  args_typed M (ctab (orig K id)) args -> calm (orig K id) (startc (orig K id) args w) s ->
  (sb s, sk s) = at_ -> chk_land j id at_ f = true -> fires (lc id) (onward f) ->
  (forall o vs, halt o vs (sw s) = false -> halt o vs w0 = false) -> rel K id s env ->
  (0 < j -> exists B i o a r, blk_at (ov id) (sb s) = Some B /\
    inst_at B (sk s) = Some (IEff i o a r)) ->
  exists t, Lands env w0 j (Landing id s t f) /\ sw t = sw s /\
  length args = arity (cq (lc id)) /\ args_typed M (ct (lc id)) args /\
  calm (lq id) (startc (lq id) args w) t /\
  forall B i o a r, 0 < j -> blk_at (ov id) (sb s) = Some B ->
    inst_at B (sk s) = Some (IEff i o a r) -> exists B' i' a' r',
    blk_at (cq (lc id)) (sb t) = Some B' /\
    inst_at B' (sk t) = Some (IEff i' o a' r') /\ map (se t) a' = map (se s) a.
Proof.
  intros Li Len Ta Cm At Ch Fi Lt Rl Call. destruct (lands_ok id Li) as [So Oc].
  rewrite Oc in *. simpl in Len, Ta, Call.
  pose proof So as [_ Ok]. pose proof (chk_pair_ok L (ct (lc id)) H _ _ _ _ _ _ _ _ Ok) as Pr.
  pose proof (args_okq _ _ _ _ _ _ Pr args Len) as Lenq.
  pose proof Ch as Ch0. unfold Frames.chk_land in Ch0. apply andb_true_iff in Ch0.
  destruct Ch0 as [Ch0 Nd]. apply andb_true_iff in Ch0. destruct Ch0 as [Ch0 _].
  apply andb_true_iff in Ch0. destruct Ch0 as [Sr _].
  apply posb_ok in Sr. assert (Src: (sb s, sk s) = src (onward f)) by congruence.
  destruct (tgt (onward f)) as [b k] eqn:Tg. destruct j as [|j].
  - destruct (land_one L M H halt F FT (lc id) (onward f) args w s So Fi Len Ta Cm Src)
      as [t [Ct [Att [Ew [_ [Fr Sp]]]]]].
    exists t. split; [|repeat (split; auto)].
    + constructor; simpl; auto; try lia; [eapply pass_later; eauto|exists at_; exact Ch].
    + intros. lia.
  - destruct (waits_at lc id f) as [r0|] eqn:Wt; [|discriminate].
    destruct (Call (Nat.lt_0_succ _)) as [B [i [o [a [r [EB NB]]]]]].
    destruct (land_call L M H halt lc F FT id f args w s B i o a r r0 So Fi Len Ta Cm Src EB NB Wt)
      as [t [B' [i' [a' [Ct [Att [Ew [Fr [Sp [EB' [NB' Ops]]]]]]]]]]].
    exists t. split; [|split; [auto|split; [auto|split; [auto|split; [auto|]]]]].
    + constructor; simpl; auto; [eapply pass_later; eauto|exists at_; exact Ch|].
      intros _. exists B', i', o, a', r0. auto.
    + intros B2 i2 o2 a2 r2 _ E2 N2. simpl in E2. rewrite EB in E2. inversion E2; subst B2.
      rewrite NB in N2. inversion N2; subst. exists B', i', a', r0. auto.
Qed.
Definition pair_of (x : landing) := (fid x, ft x).
Lemma land_all args w env id s rest : length args = arity (ov 0) ->
  args_typed M (ctab (orig K 0)) args -> 0 < cn K -> stack args w env id s rest ->
  forall j fs w0,
  (forall o vs, halt o vs (sw s) = false -> halt o vs w0 = false) ->
  chk_lands j id (sb s, sk s) fs = true -> all_fire id fs ->
  (0 < j -> exists B i o a r, blk_at (ov id) (sb s) = Some B /\
    inst_at B (sk s) = Some (IEff i o a r)) ->
  exists x l, map ff (x :: l) = fs /\ fid x = id /\ fo x = s /\
  active args w id (ft x) (map pair_of l) /\ sw (ft x) = sw s /\
  chain K id fs = map (fun y => follows K (fid y) (ff y)) (x :: l) /\
  (forall k y, nth_error (x :: l) k = Some y -> Lands env w0 (j + k) y) /\
  forall B i o a r, 0 < j -> blk_at (ov id) (sb s) = Some B ->
    inst_at B (sk s) = Some (IEff i o a r) -> exists B' i' a' r',
    blk_at (cq (lc id)) (sb (ft x)) = Some B' /\
    inst_at B' (sk (ft x)) = Some (IEff i' o a' r') /\ map (se (ft x)) a' = map (se s) a.
Proof.
  intros Len0 Ta0 Lc St. induction St as [s Cm Rl|id s c u rest B i o a r St IH Lt Ln Cl EB NB Co
    Len
    Ta Cm Rl]; intros j fs w0 Mo Ch Fi Call; (destruct fs as [|f fs]; [discriminate|]);
    simpl in Ch, Fi; apply andb_true_iff in Ch; destruct Ch as [C1 C2]; destruct Fi as [F1 F2].
  - destruct fs as [|f2 fs]; [|discriminate].
    destruct (land_any j 0 args w s f _ w0 env Lc Len0 Ta0 Cm eq_refl C1 F1 Mo Rl Call)
      as [t [La [Ew [Lq [Tq [Ct Ops]]]]]].
    exists (Landing 0 s t f), []. split; [auto|]. split; [auto|]. split; [auto|].
    split; [apply AOuter; auto|]. split; [auto|]. split; [auto|].
    split; [|exact Ops]. intros [|k] y Q; [|destruct k; discriminate].
    inversion Q; subst. now rewrite Nat.add_0_r.
  - destruct fs as [|f2 fs].
    { apply Nat.eqb_eq in C2. lia. }
    apply andb_true_iff in C2. destruct C2 as [_ C2]. rewrite Cl in C2, F2. cbn [fst snd] in C2, F2.
    destruct (IH (S j) (f2 :: fs) w0) as [y [l [Ql [Iy [Oy [Ac [Wy [Qc [La Opy]]]]]]]]]; auto.
    { intros o1 vs Hh. apply Mo. eapply (calm_later L M H halt FT (orig K id)); eauto. }
    { intros _. exists B, i, o, a, r. auto. }
    destruct (Opy B i o a r (Nat.lt_0_succ _) EB NB) as [B' [i' [a' [r' [EB' [NB' Ops]]]]]].
    destruct (land_any j id (map (se u) a) (sw u) s f _ w0 env Ln Len Ta Cm eq_refl C1 F1 Mo Rl
      Call)
      as [t [Lx [Ew [Lq [Tq [Ct Opt]]]]]].
    exists (Landing id s t f), (y :: l). split; [cbn [map] in Ql |- *; now rewrite Ql|].
    split; auto. split; auto. split; [|split; [exact Ew|split; [|split]]].
    + cbn [map]. unfold pair_of at 1. rewrite Iy. cbn [ft]. rewrite <- Ops in Lq, Tq, Ct.
      rewrite <- Wy in Ct. eapply AInner; eauto. now rewrite Cl.
    + cbn [chain map] in Qc |- *. rewrite Cl. cbn [fst]. now rewrite Qc.
    + intros [|k] z Q; [inversion Q; subst; now rewrite Nat.add_0_r|].
      rewrite Nat.add_succ_r. exact (La k z Q).
    + exact Opt.
Qed.
End Landing.

(** ** The entry fires *)
(** The contents that an activation is assigned. Other values hold junk. *)
Definition held (E : fentry op) (env junk : nat -> V) (f : land op) : nat -> V :=
  fun x => match get x (gives f) with
           | Some o => content M env (run_steps M env (fsteps E) []) o | None => junk x end.
(** The state behind the call at which an activation waits, if the call has these results. *)
Definition behind (id : nat) (u : st V W) (rs : list V) (w' : W) : st V W :=
  match blk_at (cq (lc id)) (sb u) with
  | Some B =>
    match inst_at B (sk u) with
    | Some (IEff i o a r) =>
      let l := combine r (pad L M o (length r) rs) in
      St (sb u) (S (sk u)) (assign l (se u)) w' (str u ++ [i]) (bindr (cq (lc id)) l (ss u))
    | _ => u
    end
  | None => u
  end.
(** An activation that waits goes on, whatever the call gives. *)
Definition resumes (id : nat) (u : st V W) (env : nat -> V) : Prop :=
  forall rs w', Alike (cneed (lc id)) (behind id u rs w') (behind id (with_env u env) rs w').

(** [c1] is a certificate from the version q to a copy. Let q come to the source point without a
    trap. No step of the entry traps. Then there are activations, each started as its caller's call
    says and the outermost on the same input, that come without a trap to where the entry lands. The
    innermost is in the world of q. Each is assigned contents that it has there. The innermost is
    given every value that is needed there, and each other one every value that is needed behind its
    call. *)
Theorem out_right (c1 : cert) (E1 : entry op) (E : fentry op) from_ args w sp :
  good c1 -> fires c1 E1 -> chk_copy L callee returns (code_q c1) K = true ->
  CallsMean L M halt callee returns K ->
  chk_out_entry L lc K E1 E from_ = true ->
  all_fire (fst (begins K (fst (tgt E1)))) (frames E) ->
  length args = arity (cp c1) -> args_typed M (ct c1) args -> args_typed M (ct (lc 0)) args ->
  calm (code_p c1) (startc (code_p c1) args w) sp -> (sb sp, sk sp) = fsrc E ->
  exists id t rest, active args w id t rest /\ sw t = sw sp /\
    Forall2 (fun f u => (sb u, sk u) = where_ f) (frames E) (t :: map snd rest) /\
    forall env junk, (forall x, mem x (freq E) = true -> env x = se sp x) ->
    steps_pass M halt env (fsteps E) [] (sw sp) /\
    Forall2 (fun f u => forall x o, get x (gives f) = Some o -> held E env junk f x = se u x)
      (frames E) (t :: map snd rest) /\
    Alike (cneed (lc id)) t (with_env t (held E env junk (hd (Land (0, 0) MLeaf E1) (frames E)))) /\
    Forall2 (fun f cu => resumes (fst cu) (snd cu) (held E env junk f)) (tl (frames E)) rest.
Proof.
  intros S1 [A1 [X1 [h1 [f1 [Tr1 [P1 Y1]]]]]] Cp Mean Co Fi Len Ta1 Ta0 Cm At.
  pose proof S1 as [Rl1 Ok1].
  pose proof (chk_pair_ok L (ct c1) H _ _ _ _ _ _ _ _ Ok1) as Pr1.
  unfold chk_out_entry in Co. destruct (tgt E1) as [b j] eqn:Tg.
  destruct (begins K b) as [id0 at0] eqn:Bg.
  apply andb_true_iff in Co. destruct Co as [Co Cl]. apply andb_true_iff in Co.
  destruct Co as [Src Stp]. apply posb_ok in Src. rewrite Src in At.
  cbn [fst] in Fi. rewrite Bg in Fi. cbn [fst] in Fi.
  assert (Gor: forall id, id < cn K -> good_code L M (orig K id)).
  { intros id Li. destruct (lands_ok id Li) as [Sc ->]. eapply good_p; eauto. }
  assert (GI: good_code L M (code_q c1)) by (eapply good_q; eauto).
  destruct (start_parts L callee returns (code_q c1) K Cp) as [Lc [_ [B [B0 [EB [EB0 Ow]]]]]].
  assert (Lenq: length args = arity (cq c1)) by (eapply args_okq; eauto).
  assert (Len0: length args = arity (ov 0)).
  { destruct (owns_ok K _ _ _ Ow) as [Q _]. unfold arity, params0 in Lenq |- *.
    simpl in EB. rewrite EB, Q, map_length in Lenq. now rewrite EB0. }
  assert (Ta0': args_typed M (ctab (orig K 0)) args).
  { destruct (lands_ok 0 Lc) as [_ ->]. exact Ta0. }
  (* The copy. *)
  destruct (real_right L M (ct c1) H halt (canch c1) (cp c1) (cq c1) (ck c1) X1 (cpast c1)
    (cahead c1) (cneed c1) (carmed c1) F Rl1 FT Ok1 Tr1 args w Len Ta1 E1 h1 f1 sp A1 Y1 P1 Cm At)
    as [si [Ci [Ai [Ew [_ Right]]]]].
  destruct (Right (se sp) (se si) (fun x _ => eq_refl)) as [Sp1 [Pv1 _]].
  (* Its activations. *)
  destruct (copy_out L M halt callee returns (code_q c1) K F GI Gor Cp Mean args w Len0 Ta0' Ta1 si
    Ci) as [id [s [rest0 [Sk Mt]]]].
  destruct (mt_at Mt) as [k0 [Bi Ki]]. rewrite Tg in Ai. inversion Ai; subst b j.
  rewrite Bi in Bg. inversion Bg; subst id0 at0. cbn [fst snd] in Cl. rewrite <- Ki in Cl.
  assert (Ws: sw s = sw sp) by (rewrite <- (mt_w Mt); exact Ew).
  destruct (land_all E1 E from_ args w (se si) id s rest0 Len0 Ta0' Lc Sk 0 (frames E) (sw sp))
    as [x [l [Ql [Ix [Ox [Ac [Wx [Qc [La _]]]]]]]]]; auto; [now rewrite Ws|intros; lia|].
  exists id, (ft x), (map pair_of l). split; auto. split; [congruence|].
  assert (Snd: map snd (map pair_of l) = map ft l) by (rewrite map_map; reflexivity).
  rewrite Snd, <- Ql. split.
  { clear -La. revert La. generalize 0. change (ft x :: map ft l) with (map ft (x :: l)).
    induction (x :: l) as [|y m IH]; intros n La; simpl; constructor.
    - destruct (la_chk _ _ _ _ _ _ _ (La 0 y eq_refl)) as [at_ Ch]. unfold chk_land in Ch.
      apply andb_true_iff in Ch. destruct Ch as [Ch _]. apply andb_true_iff in Ch.
      destruct Ch as [Ch _]. apply andb_true_iff in Ch. destruct Ch as [_ Ch]. apply posb_ok in Ch.
      rewrite Ch. exact (la_tgt _ _ _ _ _ _ _ (La 0 y eq_refl)).
    - apply (IH (S n)). intros k z Q. replace (S n + k) with (n + S k) by lia. now apply La. }
  intros env junk Henv.
  set (nexts := nth_error (chain K id (frames E))) in *.
  set (env2 := fun k => match nth_error (x :: l) k with Some y => se (fo y) | None => se sp end).
  assert (Nx: forall k N, nexts k = Some N -> exists y, nth_error (x :: l) k = Some y /\
    N = follows K (fid y) (ff y)).
  { intros k N Q. unfold nexts in Q. rewrite Qc, nth_error_map in Q.
    destruct (nth_error (x :: l) k) as [y|]; [|discriminate]. inversion Q. eauto. }
  assert (Given: forall k N y z o, nexts k = Some N -> given N y = Some z ->
    get z (assigns E1) = Some o -> fire M E1 (se sp) o = env2 k y).
  { intros k N y z o Nk Gy Gx. destruct (Nx _ _ Nk) as [v [Qv ->]]. unfold env2. rewrite Qv.
    pose proof (La _ _ Qv) as Lv. simpl in Gy. unfold given_in in Gy.
    rewrite <- (la_src _ _ _ _ _ _ _ Lv) in Gy. cbn [fst snd] in Gy.
    destruct (availb _ y (sb (fo v)) (sk (fo v))) eqn:Av; [|discriminate]. inversion Gy; subst z.
    destruct (la_rel _ _ _ _ _ _ _ Lv y Av) as [_ ->]. rewrite <- (Pv1 _ _ Gx). simpl.
    unfold fired. now rewrite Gx. }
  assert (Held: forall k y, nth_error (x :: l) k = Some y -> forall z o,
    get z (gives (ff y)) = Some o -> held E env junk (ff y) z = se (ft y) z).
  { intros k y Qy z o Gz. pose proof (La _ _ Qy) as Ly.
    destruct (la_chk _ _ _ _ _ _ _ Ly) as [at_ Ch]. unfold chk_land in Ch.
    apply andb_true_iff in Ch. destruct Ch as [Ch _]. apply andb_true_iff in Ch.
    destruct Ch as [_ Ch]. pose proof (each_ok _ _ _ _ Ch Gz) as Q. simpl in Q.
    destruct (get z (assigns (onward (ff y)))) as [o2|] eqn:G2; [|discriminate].
    unfold held. rewrite Gz, <- (la_fire _ _ _ _ _ _ _ Ly _ _ G2).
    assert (Nk: nexts k = Some (follows K (fid y) (ff y))).
    { unfold nexts. rewrite Qc, nth_error_map, Qy. reflexivity. }
    rewrite (composed L M E1 nexts (freq E) (fsteps E) from_ F Stp env (se sp) env2 Henv Given k
      (follows K (fid y) (ff y)) o o2 Nk Q).
    unfold env2. now rewrite Qy. }
  split; [|split; [|split]].
  - eapply (composed_pass L M halt E1 nexts (freq E) (fsteps E) from_ F Stp env (se sp) env2 Henv
      Given); eauto.
    intros k N Nk. destruct (Nx _ _ Nk) as [y [Qy ->]]. unfold env2. rewrite Qy.
    exact (la_pass _ _ _ _ _ _ _ (La _ _ Qy)).
  - clear -Held. revert Held. change (ft x :: map ft l) with (map ft (x :: l)).
    induction (x :: l) as [|y m IH]; intro Held; simpl; constructor.
    + exact (Held 0 y eq_refl).
    + apply IH. intros k z. exact (Held (S k) z).
  - pose proof (La 0 x eq_refl) as Lx. constructor; simpl; auto. intros y Hy.
    destruct (la_chk _ _ _ _ _ _ _ Lx) as [at_ Ch]. unfold chk_land in Ch.
    apply andb_true_iff in Ch. destruct Ch as [_ Ch].
    rewrite <- (la_tgt _ _ _ _ _ _ _ Lx), Ix in Ch. cbn [Nat.add] in Ch.
    pose proof (for_all_ok _ _ _ Ch Hy) as Q. unfold has in Q.
    destruct (get y (gives (ff x))) as [o|] eqn:Gy; [|discriminate]. exact (Held 0 x eq_refl y o
      Gy).
  - assert (Gen: forall m n, (forall k y, nth_error m k = Some y ->
      Lands E1 E from_ (se si) (sw sp) (S (n + k)) y) ->
      (forall k y, nth_error m k = Some y -> forall z o, get z (gives (ff y)) = Some o ->
        held E env junk (ff y) z = se (ft y) z) ->
      Forall2 (fun f cu => resumes (fst cu) (snd cu) (held E env junk f)) (map ff m)
        (map pair_of m)).
    2:{ apply (Gen l 0); [intros k y Q; exact (La (S k) y Q)|intros k y Q; exact (Held (S k) y Q)].
      }
    clear. induction m as [|y m IH]; intros n La Held; simpl; constructor.
    + pose proof (La 0 y eq_refl) as Ly. pose proof (Held 0 y eq_refl) as Hy. clear La Held.
      destruct (la_call _ _ _ _ _ _ _ Ly) as [B [i [o [a [r [EB [NB Wt]]]]]]]; [lia|].
      destruct (la_chk _ _ _ _ _ _ _ Ly) as [at_ Ch]. unfold chk_land in Ch.
      apply andb_true_iff in Ch. destruct Ch as [_ Ch]. rewrite Wt in Ch.
      rewrite <- (la_tgt _ _ _ _ _ _ _ Ly) in Ch. simpl in Ch.
      intros rs w'. unfold behind. simpl. rewrite EB, NB. constructor; simpl; auto.
      intros z Hz. pose proof (for_all_ok _ _ _ Ch Hz) as Q. simpl in Q. unfold assign.
      destruct (find (fun y0 => fst y0 =? z) (combine r (pad L M o (length r) rs))) as [[v c]|]
        eqn:Fd;
        auto.
      apply orb_true_iff in Q. destruct Q as [Q|Q].
      * exfalso. apply inb_In in Q.
        destruct (in_combine r (pad L M o (length r) rs) z) as [c Ic]; auto.
        { unfold pad. now rewrite map_length, seq_length. }
        apply (find_none _ _ Fd) in Ic. simpl in Ic. now rewrite Nat.eqb_refl in Ic.
      * unfold has in Q. destruct (get z (gives (ff y))) as [o1|] eqn:Gz; [|discriminate].
        exact (Hy z o1 Gz).
    + apply (IH (S n)).
      * intros k z Q. replace (S n + k) with (n + S k) by lia. exact (La (S k) z Q).
      * intros k z. exact (Held (S k) z).
Qed.

(** ** Going on *)
Lemma active_start args w id t rest : active args w id t rest -> id < cn K /\ exists vs w',
  length vs = arity (cq (lc id)) /\ args_typed M (ct (lc id)) vs /\
  calm (lq id) (startc (lq id) vs w') t.
Proof. destruct 1; split; auto; do 2 eexists; split; eauto. Qed.
Lemma active_step args w id t t' rest : active args w id t rest -> passes halt (cq (lc id)) t ->
  stepc (lq id) t = Some t' -> active args w id t' rest.
Proof.
  intros Ac Ps St. destruct Ac as [t Lc Len Ta Ct|id t c u rest B i o a r Ac Ln Cl EB NB Co Len Ta
    Ct].
  - apply AOuter; auto. eapply CS; eauto.
  - eapply AInner; eauto. eapply CS; eauto.
Qed.
(** The innermost activation goes on as the run does that it stands for, to the same results and the
    same traps. *)
Theorem frames_go_on args w id t rest t' e : active args w id t rest ->
  Alike (cneed (lc id)) t t' -> calm (lq id) t e -> active args w id e rest /\
  exists e', calm (lq id) t' e' /\ Alike (cneed (lc id)) e e' /\
  (forall o vs, result (cq (lc id)) e o vs -> result (cq (lc id)) e' o vs) /\
  (forall o vs, traps halt (cq (lc id)) e o vs -> traps halt (cq (lc id)) e' o vs).
Proof.
  intros Ac Al Ce. split.
  { destruct Ac; [constructor|eapply AInner]; eauto;
      eapply (calm_trans L M (ct _) halt (canch _) nowhere); eauto. }
  destruct (active_start _ _ _ _ _ Ac) as [Ln [vs [w' [Len [Ta Ct]]]]].
  destruct (lands_ok id Ln) as [[Rl Ok] _].
  pose proof (chk_pair_ok L (ct (lc id)) H _ _ _ _ _ _ _ _ Ok) as Pr.
  pose proof (live_ok L (ct (lc id)) H _ _ _ _ _ _ _ _ Ok) as Lv.
  pose proof (table_ok _ _ _ _ _ _ Pr) as Tok. pose proof (okq _ _ _ _ _ _ Pr) as Okq.
  assert (Lenp: length vs = arity (cp (lc id))).
  { unfold chk_pair in Pr. bools. congruence. }
  destruct (calm_on_alike L M (ct (lc id)) H halt (canch (lc id)) (cp (lc id)) (cq (lc id))
    (ck (lc id)) (cpast (lc id)) (cahead (lc id)) (cneed (lc id)) (carmed (lc id)) F Rl FT Ok vs w'
    Lenp Ta t t' e Ct Al Ce) as [e' [Ce' Ale]].
  exists e'. split; auto. split; auto.
  assert (Ie: Inv L M (ct (lc id)) (cq (lc id)) e).
  { eapply (calm_inv L M (ct (lc id)) halt (canch (lc id)) nowhere (cq (lc id)) F Rl Tok Okq vs w'
      Len Ta). eapply (calm_trans L M (ct (lc id)) halt (canch (lc id)) nowhere); eauto. }
  split; intros o us Re.
  - destruct Re as [B [EB [N [Nil [Lo Vs]]]]]. exists B.
    rewrite (al_b _ _ _ Ale), (al_k _ _ _ Ale). repeat split; auto. rewrite Vs. symmetry.
    destruct (live_at L (ct (lc id)) (cq (lc id)) (can_trap H) (cneed (lc id)) (carmed (lc id)) Lv
      _ _
      (inv_live _ _ _ _ _ Ie) EB) as [_ [_ LL]].
    unfold chk_need_last in LL. apply andb_true_iff in LL. destruct LL as [Nd _].
    eapply needs_map; eauto. intros x Hx. apply (al_env _ _ _ Ale).
    apply inst_none in N. destruct (inv_at _ _ _ _ _ Ie) as [B0 [E0 K0]].
    replace B0 with B in * by congruence. replace (sk e) with (bn B) by lia. exact Hx.
  - destruct Re as [B [i [x [y [EB [N [-> Ht]]]]]]].
    assert (Q: map (se e') y = map (se e) y).
    { apply (alike_operands L M (ct (lc id)) H (canch (lc id)) (cp (lc id)) (cq (lc id)) (ck (lc
      id))
        (cpast (lc id)) (cahead (lc id)) (cneed (lc id)) (carmed (lc id)) Ok e e' B i x o y Ie Ale
          EB N).
      destruct (can_trap H o) eqn:Cn; auto.
      rewrite (can_ok _ _ _ FT) in Ht by auto. discriminate. }
    exists B, i, x, y. rewrite (al_b _ _ _ Ale), (al_k _ _ _ Ale), (al_w _ _ _ Ale), Q. auto.
Qed.
(** Where the innermost activation returns, the next goes on behind its call with the results. Let
    it be given what [resumes] asks for. Then it is where the run is that it stands for. *)
Theorem frames_return args w id t c u rest rop rs env :
  (forall o vs w' e rop rs, callee o = Some (fnc K id) -> has_call (cq (lc c)) o ->
    length vs = arity (cq (lc id)) -> args_typed M (ct (lc id)) vs ->
    calm (lq id) (startc (lq id) vs w') e -> result (cq (lc id)) e rop rs -> returns rop = true ->
    fits L M o rs -> effsem M o vs w' = (sw e, rs)) ->
  active args w id t ((c, u) :: rest) -> result (cq (lc id)) t rop rs -> returns rop = true ->
  (forall B i o a r, blk_at (cq (lc c)) (sb u) = Some B -> inst_at B (sk u) = Some (IEff i o a r) ->
    fits L M o rs) ->
  resumes c u env ->
  stepc (lq c) u = Some (behind c u rs (sw t)) /\ active args w c (behind c u rs (sw t)) rest /\
  Alike (cneed (lc c)) (behind c u rs (sw t)) (behind c (with_env u env) rs (sw t)).
Proof.
  intros Mean Ac Re Rr Ft Rs.
  inversion Ac as [|id1 t1 c1 u1 rest1 B i o a r Ac1 Ln Cl EB NB Co Len Ta Ct]; subst.
  assert (Sd: has_call (cq (lc (fst (caller K id)))) o)
    by (exists (sb u), (sk u), B, i, a, r; auto).
  pose proof (Mean _ _ _ _ _ _ Co Sd Len Ta Ct Re Rr (Ft _ _ _ _ _ EB NB)) as Es.
  assert (St: stepc (lq (fst (caller K id))) u = Some (behind (fst (caller K id)) u rs (sw t))).
  { unfold behind. rewrite EB, NB. rewrite (step_c L M (lq (fst (caller K id))) _ _ EB), NB, Es.
    reflexivity. }
  split; auto. split; [|apply Rs].
  assert (Ps: passes halt (cq (lc (fst (caller K id)))) u) by (unfold passes; now rewrite EB, NB).
  eapply active_step; eauto.
Qed.
End Out.

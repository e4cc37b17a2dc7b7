(** Places: when two accesses are apart, and when one covers the other. All facts hold on the circle
    of addresses modulo 2^w, so they need no premise about traps. *)
From Coq Require Import ZArith Lia List Bool.
From Osier Require Import Util Terms.
Local Open Scope Z_scope.

Definition ok_place (p : place) : Prop :=
  match p with Bytes _ _ len w => 0 <= w /\ 0 < len <= 2 ^ w | Cell _ => True end.
Definition width (p : place) : Z := match p with Bytes _ _ _ w => w | Cell _ => 0 end.
(** How far the second place lies ahead of the first, around the circle. [d] is the distance of the
    addresses, if it is known. *)
Definition ahead (off off' w d : Z) : Z := (off' - off + d) mod 2 ^ w.
Definition is_apart (p q : place) (d : option Z) : bool :=
  match p, q with
  | Bytes m off len w, Bytes m' off' len' w' =>
    negb (Nat.eqb m m') ||
    match d with
    | Some d => (w =? w') && (len <=? ahead off off' w d) && (ahead off off' w d <=? 2 ^ w - len')
    | None => false
    end
  | Cell a, Cell b => negb (Nat.eqb a b)
  | _, _ => true
  end.
(** Whether the first place contains the second. *)
Definition covers (p q : place) (d : option Z) : bool :=
  match p, q with
  | Bytes m off len w, Bytes m' off' len' w' =>
    Nat.eqb m m' && (w =? w') &&
    match d with Some d => ahead off off' w d + len' <=? len | None => false end
  | Cell a, Cell b => Nat.eqb a b
  | _, _ => false
  end.
(** The distance is that of the addresses. *)
Definition distant (a b : Z) (w : Z) (d : option Z) : Prop :=
  match d with Some d => (b - a) mod 2 ^ w = d mod 2 ^ w | None => True end.

Lemma pow_pos w : 0 <= w -> 0 < 2 ^ w.
Proof. intro H. apply Z.pow_pos_nonneg; lia. Qed.
Lemma mod_eq M x y : 0 < M -> x mod M = y mod M -> exists q, x = y + M * q.
Proof.
  intros P H. exists (x / M - y / M). pose proof (Z.div_mod x M). pose proof (Z.div_mod y M). lia.
Qed.
Lemma eq_mod M x y q : 0 < M -> x = y + M * q -> x mod M = y mod M.
Proof. intros P ->. rewrite (Z.mul_comm M q). apply Z_mod_plus. lia. Qed.
Lemma ahead_ex off off' w d a b : 0 <= w -> (b - a) mod 2 ^ w = d mod 2 ^ w ->
  0 <= ahead off off' w d < 2 ^ w /\
  exists q, b + off' = a + off + ahead off off' w d + 2 ^ w * q.
Proof.
  intros Hw E. pose proof (pow_pos w Hw) as P. unfold ahead. split; [now apply Z.mod_pos_bound|].
  destruct (mod_eq _ _ _ P E) as [q Q]. pose proof (Z.div_mod (off' - off + d) (2 ^ w)) as Dv.
  exists (q + (off' - off + d) / 2 ^ w). lia.
Qed.
Lemma near M x y q : 0 < M -> 0 <= x < M -> 0 <= y < M -> x = y + M * q -> x = y.
Proof. intros. assert (q = 0) by nia. subst. lia. Qed.
Theorem apart_ok p q d a b l : ok_place p -> ok_place q -> is_apart p q d = true ->
  distant a b (width p) d -> within a p l -> within b q l -> False.
Proof.
  destruct p as [m off len w|n], q as [m' off' len' w'|n']; destruct l as [m0 x|n0]; simpl;
    intros Op Oq A Ds Wp Wq; try contradiction.
  - destruct Wp as [-> [k [Hk ->]]]. destruct Wq as [-> [k' [Hk' X]]].
    rewrite Nat.eqb_refl in A. simpl in A. destruct d as [d|]; [|discriminate].
    apply andb_true_iff in A. destruct A as [A A3]. apply andb_true_iff in A. destruct A as [A1 A2].
    apply Z.eqb_eq in A1. apply Z.leb_le in A2. apply Z.leb_le in A3. subst w'. simpl in Ds.
    destruct (ahead_ex off off' w d a b) as [Hr [q Q]]; [lia|exact Ds|].
    pose proof (pow_pos w ltac:(lia)) as P. destruct (mod_eq _ _ _ P X) as [r R].
    assert (k = ahead off off' w d + k') by (apply (near (2 ^ w) _ _ (q + r)); lia). lia.
  - subst. rewrite Nat.eqb_refl in A. discriminate.
Qed.
Theorem covers_ok p q d a b l : ok_place p -> ok_place q -> covers p q d = true ->
  distant a b (width p) d -> within b q l -> within a p l.
Proof.
  destruct p as [m off len w|n], q as [m' off' len' w'|n']; destruct l as [m0 x|n0]; simpl;
    intros Op Oq A Ds Wq; try contradiction; try discriminate.
  - destruct Wq as [-> [k' [Hk' X]]]. apply andb_true_iff in A. destruct A as [A A3].
    apply andb_true_iff in A. destruct A as [A1 A2]. apply Nat.eqb_eq in A1. apply Z.eqb_eq in A2.
    subst. destruct d as [d|]; [|discriminate]. apply Z.leb_le in A3.
    destruct (ahead_ex off off' w' d a b) as [Hr [q Q]]; [lia|exact Ds|].
    split; auto. exists (ahead off off' w' d + k'). split; [lia|].
    pose proof (pow_pos w' ltac:(lia)) as P. apply (eq_mod _ _ _ q); lia.
  - apply Nat.eqb_eq in A. congruence.
Qed.
Lemma within_dec a p l : ok_place p -> within a p l \/ ~ within a p l.
Proof.
  destruct p as [m off len w|n], l as [m' x|n']; simpl; intro Op; try (right; tauto).
  - destruct (Nat.eq_dec m' m) as [->|N]; [|right; tauto].
    pose proof (pow_pos w ltac:(lia)) as P. set (k := (x - (a + off)) mod 2 ^ w).
    pose proof (Z.mod_pos_bound (x - (a + off)) (2 ^ w) P) as Hk. fold k in Hk.
    destruct (Z_lt_dec k len) as [Lk|Lk].
    + destruct (Z.eq_dec x ((a + off + k) mod 2 ^ w)) as [E|E].
      * left. split; auto. exists k. lia.
      * right. intros [_ [k' [Hk' X]]]. apply E. subst x. f_equal. f_equal.
        apply (near (2 ^ w) k' k ((a + off + k') / 2 ^ w + (((a + off + k') mod 2 ^ w - (a + off))
          / 2 ^ w))); try lia.
        pose proof (Z.div_mod (a + off + k') (2 ^ w)) as D1.
        pose proof (Z.div_mod ((a + off + k') mod 2 ^ w - (a + off)) (2 ^ w)) as D2. unfold k. lia.
    + right. intros [_ [k' [Hk' X]]]. apply Lk. subst x.
      assert (k' = k); [|lia].
      apply (near (2 ^ w) k' k ((a + off + k') / 2 ^ w + (((a + off + k') mod 2 ^ w - (a + off))
        / 2 ^ w))); try lia.
      pose proof (Z.div_mod (a + off + k') (2 ^ w)) as D1.
      pose proof (Z.div_mod ((a + off + k') mod 2 ^ w - (a + off)) (2 ^ w)) as D2. unfold k. lia.
  - destruct (Nat.eq_dec n' n); [left|right]; auto.
Qed.

// A function that the compiler inlines: its lines are those of this file.
static inline unsigned mixed(unsigned hash, unsigned value) {
  return (hash ^ value) *
         16777619;
}

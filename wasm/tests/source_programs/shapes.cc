// Functions whose names are in a namespace, in a class and of a template.
namespace shapes {

template <typename T> struct Box {
  T width, height;
  __attribute__((noinline)) T area() const { return width * height; }
};

__attribute__((noinline)) int total(const Box<int> *boxes, int count) {
  int sum = 0;
  for (int i = 0; i < count; i++)
    sum += boxes[i].area();
  return sum;
}

} // namespace shapes

static shapes::Box<int> some[3];

extern "C" __attribute__((export_name("shapes"))) int run(int n) {
  for (int i = 0; i < 3; i++)
    some[i] = {n, i};
  return shapes::total(some, 3);
}

#include "runtime/experience/sample_fields.hpp"

namespace troupe::experience {
namespace {

// A member without a row does not compile: there are as many names as members, and as many rows.
[[maybe_unused]] void count_fields(const Trajectory& sample) {
  const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = sample;
  static_assert(
      std::tuple_size_v<decltype(std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p))> ==
      std::tuple_size_v<std::remove_const_t<decltype(kSampleFields)>>);
}

template <class Member>
const Member& learned_part(const Member& member) {
  return member;
}

}  // namespace

Trajectory learned_part(const Trajectory& sample) {
  Trajectory part;
  each_sample_field<kLearnedFrom>(
      [&](const auto& field) { part.*field.member = learned_part(sample.*field.member); });
  return part;
}

bool compares_equal(const Trajectory& a, const Trajectory& b) {
  bool equal = true;
  each_sample_field<kCompared>(
      [&](const auto& field) { equal = equal && a.*field.member == b.*field.member; });
  return equal;
}

}  // namespace troupe::experience

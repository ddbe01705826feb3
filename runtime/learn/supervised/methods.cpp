#include "runtime/learn/supervised/methods.hpp"

#include "runtime/learn/chosen.hpp"
#include "runtime/learn/supervised/method_rows.hpp"

namespace troupe::learn {
namespace {

constexpr auto kMethods = facts_of(method_rows());

}  // namespace

std::span<const Method> Method::all() {
  return kMethods;
}

}  // namespace troupe::learn

#include "actors/company/arithmetic_classes.hpp"

#include "actors/controller/run_plan.hpp"
#include "runtime/core/find_value.hpp"

#include <string_view>

namespace troupe::actors::company {
namespace {

// "bf16" of "bf16/v1/9c31...".
std::string_view dtype_of(std::string_view name) {
  return name.substr(0, name.find('/'));
}

std::string advice(const std::string& one, const std::string& other) {
  if (dtype_of(one) == "bf16-compute" || dtype_of(other) == "bf16-compute") {
    return "with actor.param_dtype bf16-compute give them GPUs of one compute capability and one "
           "build of libtroupe_cuda.so, or give --actor.param_dtype bf16, in which all devices "
           "mix";
  }
  return "install one build on both, and see with `troupe doctor` which of the two computes "
         "differently from others";
}

}  // namespace

void ArithmeticClasses::note(const std::string& role,
                             const std::string& name,
                             const std::string& where) {
  if (!name.empty()) roles_[role] = {name, where};
}

core::Result<void> ArithmeticClasses::check(const std::string& role) const {
  const Noted* const policy = core::find_value(roles_, std::string(controller::kPolicyRole));
  const Noted* const own = core::find_value(roles_, role);
  if (policy == nullptr || own == nullptr || policy->name == own->name) return {};
  return core::fail(core::ErrorCode::kUnsupported,
                    role + " (" + own->where + ") computes in class " + own->name + ", " +
                        controller::kPolicyRole + " (" + policy->where + ") in class " +
                        policy->name + ": their log-probs would differ",
                    advice(own->name, policy->name));
}

std::vector<std::string> ArithmeticClasses::strangers() const {
  std::vector<std::string> all;
  for (const auto& [role, noted] : roles_)
    if (!check(role)) all.push_back(role);
  return all;
}

std::string ArithmeticClasses::of(const std::string& role) const {
  const Noted* const noted = core::find_value(roles_, role);
  return noted == nullptr ? "" : noted->name;
}

}  // namespace troupe::actors::company

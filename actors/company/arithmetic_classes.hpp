// The classes of arithmetic (runtime/model/arithmetic.hpp) that the roles of a run compute in.
// Log-probs of policy, reference and generators are compared with each other, so all of them must
// be of the policy's class. Roles without a name (critic, rewards) do not matter. A value type.
#pragma once

#include "runtime/core/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::actors::company {

class ArithmeticClasses {
 public:
  // Takes a start of `role` down; an empty `name` is ignored. `where`: for messages, as "node/a on
  // host b".
  void note(const std::string& role, const std::string& name, const std::string& where);

  // Whether the role is of the policy's class, as far as both are known. Error kUnsupported: names
  // both classes, where they are, and what to change.
  core::Result<void> check(const std::string& role) const;
  // The roles that are not.
  std::vector<std::string> strangers() const;

  // The role's class; "" when it is not known.
  std::string of(const std::string& role) const;

 private:
  struct Noted {
    std::string name, where;
  };
  std::map<std::string, Noted> roles_;
};

}  // namespace troupe::actors::company

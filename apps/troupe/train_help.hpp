// The first page of `troupe train [METHOD] --help`: what the method does, what rows it reads, how
// it is called. Pure.
#pragma once

#include <string>
#include <string_view>

namespace troupe::app {

// `method`: a method's name; empty: all of them.
std::string train_help(std::string_view method);

}  // namespace troupe::app

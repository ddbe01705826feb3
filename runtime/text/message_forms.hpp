// Chat templates differ in the form in which they read what a message may hold: a content of parts
// as a list or as one text, the arguments of a call as an object or as its text. A pure function;
// any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace troupe::text {

// Renders a JSON array of messages with `render`. Arguments of calls are given as objects, decoded
// once if they are a text, and contents of text parts as lists. Where the template fails on that,
// or prints one of them as Python prints a dict, it gets the arguments' text (as it was written, or
// as Python's json writes it), or the parts joined, or an empty text in the place of a content that
// is not there. Messages without calls and parts are rendered
// once, as they are. The error is that of the first form.
core::Result<std::string> render_in_form(
    std::string_view messages_json,
    const std::function<core::Result<std::string>(const std::string&)>& render);

}  // namespace troupe::text

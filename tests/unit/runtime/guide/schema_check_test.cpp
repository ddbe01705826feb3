// Schemas that a guide cannot keep, and neighbours that it can.
#include "runtime/guide/schema_check.hpp"

#include "runtime/guide/grammar.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::guide {
namespace {

TEST(SchemaCheck, AMinimumThatOneNameCouldMeetIsRefused) {
  for (const std::string schema :
       {R"({"type":"object","patternProperties":{"^a$":{"const":1}},"additionalProperties":false,
            "minProperties":2})",
        R"({"minProperties":5,"additionalProperties":{"const":1}})", R"({"minProperties":2})",
        R"({"properties":{"a":{},"b":{}},"required":["a"],"minProperties":2})",
        R"({"properties":{"x":{"minProperties":2}}})", R"({"items":[{"minProperties":2.0}]})",
        R"({"$defs":{"d":{"anyOf":[{"minProperties":2}]}},"$ref":"#/$defs/d"})",
        R"({"minProperties":123456789012345678901234567890})"}) {
    const auto kept = check_schema(schema);
    ASSERT_FALSE(kept) << schema;
    EXPECT_EQ(kept.error().code, core::ErrorCode::kInvalidArgument);
    EXPECT_NE(kept.error().message.find("minProperties"), std::string::npos);
    EXPECT_FALSE(check_grammar({GrammarKind::kJsonSchema, schema})) << schema;
  }
}

TEST(SchemaCheck, WhatIsKeptIsTaken) {
  for (const std::string schema :
       {R"({"minProperties":1})", R"({"minProperties":0})",
        R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2})",
        R"({"properties":{"a":{},"b":{}},"required":["a","b"],"minProperties":2})",
        R"({"maxProperties":3})", R"({"properties":{"minProperties":{"type":"integer"}}})",
        R"({"const":{"minProperties":9}})", R"({"enum":[{"minProperties":9}]})", "true", "{",
        R"({"minProperties":"two"})"}) {
    EXPECT_TRUE(check_schema(schema)) << schema;
  }
  EXPECT_TRUE(check_grammar({GrammarKind::kRegex, R"({"minProperties":2})"}));
}

}  // namespace
}  // namespace troupe::guide

// RFC 4180: quotes, commas and line breaks inside fields; errors with file and line.
#include "runtime/data/csv_reader.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace troupe::data {
namespace {

using Fields = std::vector<std::string>;

std::vector<CsvRecord> records(const std::string& text, std::string* error = nullptr) {
  std::istringstream in(text);
  CsvReader reader(in, "a.csv", 1000);
  std::vector<CsvRecord> out;
  for (;;) {
    auto record = reader.next();
    if (!record) {
      if (error != nullptr) *error = record.error().message;
      return out;
    }
    if (!*record) return out;
    out.push_back(std::move(**record));
  }
}

TEST(CsvReader, ReadsQuotedFieldsOverLines) {
  const auto rows = records("\xEF\xBB\xBFq,a\r\n\"one, \"\"two\"\"\nthree\",4\r\n\r\n,\nlast,\"\"");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].fields, (Fields{"q", "a"}));
  EXPECT_EQ(rows[1].fields, (Fields{"one, \"two\"\nthree", "4"}));
  EXPECT_EQ(rows[1].where, "a.csv:2");
  EXPECT_EQ(rows[2].fields, (Fields{"", ""}));
  EXPECT_EQ(rows[2].where, "a.csv:5") << "the lines of a field count, and empty ones";
  EXPECT_EQ(rows[3].fields, (Fields{"last", ""}));
}

TEST(CsvReader, SaysWhatIsWrongAndWhere) {
  std::string error;
  records("a,b\nx,\"open\n\n", &error);
  EXPECT_EQ(error, "a.csv:2: a quote is never closed");
  records("a\nx\"y\n", &error);
  EXPECT_EQ(error, "a.csv:2: a quote inside field 1, which does not begin with one");
  records("a,b\n1,\"x\"y\n", &error);
  EXPECT_EQ(error, "a.csv:2: text after the closing quote of field 2");
  records("a\n\"" + std::string(2000, 'x') + "\"\n", &error);
  EXPECT_NE(error.find("record longer than"), std::string::npos);
}

}  // namespace
}  // namespace troupe::data

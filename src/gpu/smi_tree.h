// One tree of fields behind both forms of `nvidia-smi -q`: the text shows labels, the XML tags.
// For smi_query.cc and smi_tree.cc only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant::gpu::smi {

struct Field {
  std::string label;  // text; empty: the children stand in the parent's place, nothing for a leaf
  std::string tag;    // XML; empty: not there
  std::string value;  // of a leaf
  std::string xml_value;  // when the XML words it differently
  std::vector<Field> children;
  bool group = false;     // shown as a heading
  unsigned sections = 0;  // which -d names show it (top level only)
  int extra_indent = 0;   // text: levels deeper than the tree says
  size_t width = 55;      // text: column of the colon
};

inline Field Leaf(std::string_view label, std::string_view tag, std::string_view value,
                  std::string_view xml_value = "") {
  return {.label = std::string(label),
          .tag = std::string(tag),
          .value = std::string(value),
          .xml_value = std::string(xml_value)};
}

inline Field Group(std::string_view label, std::string_view tag, std::vector<Field> children) {
  return {.label = std::string(label),
          .tag = std::string(tag),
          .children = std::move(children),
          .group = true};
}

inline Field In(unsigned sections, Field field) {
  field.sections = sections;
  return field;
}

// "    Serial Number          : 123\n" and deeper; only what `sections` asks for.
void AppendText(const Field& field, int indent, std::string& out);
// "\t\t<serial>123</serial>\n".
void AppendXml(const Field& field, int indent, std::string& out);

}  // namespace sextant::gpu::smi

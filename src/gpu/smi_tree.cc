#include "gpu/smi_tree.h"

namespace sextant::gpu::smi {
namespace {

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      // XML 1.0 has no word for control characters.
      default:
        out.push_back(static_cast<unsigned char>(c) < 0x20 ? '?' : c);
    }
  }
  return out;
}

}  // namespace

void AppendText(const Field& field, int indent, std::string& out) {
  const int deeper = indent + field.extra_indent;
  if (!field.label.empty()) {
    std::string line(static_cast<size_t>(deeper) * 4, ' ');
    line += field.label;
    if (!field.group) {
      if (line.size() < field.width) line.resize(field.width, ' ');
      line += ": " + field.value;
    }
    out += line + "\n";
  }
  for (const Field& child : field.children) {
    AppendText(child, field.label.empty() ? deeper : deeper + 1, out);
  }
}

void AppendXml(const Field& field, int indent, std::string& out) {
  if (field.tag.empty()) return;
  const std::string tabs(static_cast<size_t>(indent), '\t');
  if (!field.group) {
    out += tabs + "<" + field.tag + ">" +
           Escape(field.xml_value.empty() ? field.value : field.xml_value) + "</" + field.tag +
           ">\n";
    return;
  }
  out += tabs + "<" + field.tag + ">\n";
  if (!field.xml_value.empty()) out += tabs + "\t" + Escape(field.xml_value) + "\n";
  for (const Field& child : field.children) AppendXml(child, indent + 1, out);
  out += tabs + "</" + field.tag + ">\n";
}

}  // namespace sextant::gpu::smi

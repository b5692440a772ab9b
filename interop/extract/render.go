package main

import (
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

var (
	messageLine = regexp.MustCompile(`^message (\w+) \{`)
	fieldLine   = regexp.MustCompile(`^\s+(?:optional |repeated |)(map<[^>]*>|[\w.]+) (\w+) = (\d+)`)
)

// The comments that stand before messages ("Pod") and fields ("Pod.spec") of an existing file.
func readComments(path string) map[string][]string {
	out := map[string][]string{}
	text, err := os.ReadFile(path)
	if err != nil {
		return out
	}
	var pending []string
	current := ""
	for _, line := range strings.Split(string(text), "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "//") {
			pending = append(pending, trimmed)
			continue
		}
		if m := messageLine.FindStringSubmatch(line); m != nil {
			current = m[1]
			out[current] = pending
		} else if m := fieldLine.FindStringSubmatch(line); m != nil && current != "" {
			out[current+"."+m[2]] = pending
		}
		pending = nil
	}
	return out
}

// Where types.go and generated.proto disagree.
func checkNumbers(p *pkg, path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // a package without protobuf
	}
	ours, theirs := map[string]bool{}, map[string]bool{}
	for _, m := range p.messages {
		for _, f := range m.fields {
			if !m.jsonOnly {
				ours[fmt.Sprintf("%s.%s=%d", m.name, f.name, f.number)] = true
			}
		}
	}
	current := ""
	field := regexp.MustCompile(`^\s+(?:optional |repeated |)(?:map<[^>]*>|[\w.]+) (\w+) = (\d+)`)
	for _, line := range strings.Split(string(text), "\n") {
		if m := messageLine.FindStringSubmatch(line); m != nil {
			current = m[1]
		} else if m := field.FindStringSubmatch(line); m != nil && !skipped[p.goPath+"."+current] {
			theirs[fmt.Sprintf("%s.%s=%s", current, m[1], m[2])] = true
		}
	}
	var out []string
	for k := range ours {
		if !theirs[k] {
			out = append(out, "not in generated.proto: "+k)
		}
	}
	for k := range theirs {
		if !ours[k] {
			out = append(out, "only in generated.proto: "+k)
		}
	}
	sort.Strings(out)
	return out
}

func (w *world) render(p *pkg, comments map[string][]string) string {
	var body strings.Builder
	imports := map[string]bool{"options.proto": true}
	for _, m := range p.messages {
		body.WriteString("\n")
		for _, c := range comments[m.name] {
			body.WriteString(c + "\n")
		}
		fmt.Fprintf(&body, "message %s {\n", m.name)
		var facts []string
		if m.top {
			facts = append(facts, "top: true")
		}
		if m.scalar != "" {
			facts = append(facts, "scalar: "+m.scalar)
		}
		if m.jsonOnly {
			facts = append(facts, "json_only: true")
		}
		if m.atomic {
			facts = append(facts, "atomic: true")
		}
		if m.unions != "" {
			facts = append(facts, "unions: "+strconv.Quote(m.unions))
		}
		if len(facts) > 0 {
			fmt.Fprintf(&body, "  option (sx.m) = {%s};\n", strings.Join(facts, " "))
		}
		for _, f := range m.fields {
			for _, c := range comments[m.name+"."+f.name] {
				body.WriteString("  " + c + "\n")
			}
			w.addImport(p, f.typ, imports)
			body.WriteString(fieldText(f))
		}
		body.WriteString("}\n")
	}
	var out strings.Builder
	out.WriteString("// Written by interop/extract; comments before messages and fields are kept when it runs again.\n")
	out.WriteString("syntax = \"proto2\";\n\n")
	fmt.Fprintf(&out, "package %s;\n\n", protoPackage(p.goPath))
	var files []string
	for f := range imports {
		files = append(files, f)
	}
	sort.Strings(files)
	for _, f := range files {
		fmt.Fprintf(&out, "import \"%s\";\n", f)
	}
	version := ""
	if p.group != "" || p.file == "core_v1" {
		version = p.goPath[strings.LastIndex(p.goPath, "/")+1:]
	}
	fmt.Fprintf(&out, "\noption (sx.file) = {go: %q", p.name)
	if version != "" {
		fmt.Fprintf(&out, " group: %q version: %q", p.group, version)
	}
	if model := modelPrefix(p.goPath); model != protoPackage(p.goPath) {
		fmt.Fprintf(&out, " model: %q", model)
	}
	out.WriteString("};\n" + body.String())
	return out.String()
}

func (w *world) addImport(p *pkg, typ string, imports map[string]bool) {
	i := strings.LastIndex(typ, ".")
	if i < 0 {
		return
	}
	if typ == anyType {
		imports["any.proto"] = true
	}
	for _, q := range w.packages {
		if protoPackage(q.goPath) == typ[:i] && q != p {
			imports[q.file+".proto"] = true
		}
	}
}

func fieldText(f *field) string {
	var facts []string
	add := func(when bool, format string, args ...any) {
		if when {
			facts = append(facts, fmt.Sprintf(format, args...))
		}
	}
	expected := upperFirst(f.name)
	if f.jsonName != "" {
		expected = upperFirst(f.jsonName)
	}
	add(f.goName != "" && f.goName != expected, "go: %q", f.goName)
	add(f.goType != f.plainType, "type: %q", f.goType)
	add(f.inline, "inline: true")
	add(f.pointer, "ptr: true")
	add(f.omitzero, "omitzero: true")
	add(f.always && !f.inline, "always: true")
	add(f.facts.required, "required: true")
	add(f.immutable, "immutable: true")
	add(f.facts.defaultVal != "", "default: %s", strconv.Quote(f.facts.defaultVal))
	add(f.facts.list != "", "list: %s", strings.ToUpper(f.facts.list))
	add(len(f.facts.keys) > 0, "keys: [%s]", quoted(f.facts.keys))
	add(f.facts.atomic, "atomic: true")
	add(f.facts.granular, "granular: true")
	add(f.facts.mergeKey != "", "merge_key: %q", f.facts.mergeKey)
	for _, s := range f.facts.strategies {
		add(true, "patch: %s", strings.ToUpper(s))
	}
	add(len(f.facts.enum) > 0, "enum: [%s]", quoted(f.facts.enum))
	var options []string
	if f.jsonName != "" {
		options = append(options, fmt.Sprintf("json_name = %q", f.jsonName))
	}
	if len(facts) > 0 {
		options = append(options, "(sx.f) = {"+strings.Join(facts, " ")+"}")
	}
	typ := "optional " + f.typ
	switch f.shape {
	case "repeated":
		typ = "repeated " + f.typ
	case "map":
		typ = "map<string, " + f.typ + ">"
	}
	line := fmt.Sprintf("  %s %s = %d", typ, f.name, f.number)
	if len(options) > 0 {
		line += " [" + strings.Join(options, ", ") + "]"
	}
	return line + ";\n"
}

func quoted(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strconv.Quote(v)
	}
	return strings.Join(out, ", ")
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

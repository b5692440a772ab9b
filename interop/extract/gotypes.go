package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

type pkg struct {
	source
	name     string
	types    map[string]*decl
	order    []string
	messages []*message
}

type decl struct {
	spec    *ast.TypeSpec
	doc     string
	imports map[string]string // alias -> path
	pos     token.Position
}

type message struct {
	name     string
	top      bool   // has TypeMeta inlined
	scalar   string // a wrapper that JSON does not show as an object
	jsonOnly bool
	atomic   bool
	unions   string
	fields   []*field
}

type field struct {
	goName, name, jsonName string
	number                 int
	typ                    string // proto type
	goType, plainType      string
	shape                  string // "", "repeated", "map"
	pointer, always        bool
	omitzero, inline       bool
	immutable              bool
	facts                  fieldFacts
}

type world struct {
	packages map[string]*pkg
	openapi  map[string]*typeFacts
}

// The types that are written in JSON otherwise than as an object of their fields, with their
// protobuf form.
var scalars = map[string]struct {
	kind   string
	fields []field
}{
	"k8s.io/apimachinery/pkg/api/resource.Quantity": {"QUANTITY", []field{{name: "string", number: 1, typ: "string"}}},
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": {"INT_OR_STRING", []field{
		{name: "type", number: 1, typ: "int64"}, {name: "intVal", number: 2, typ: "int32"}, {name: "strVal", number: 3, typ: "string"}}},
	"k8s.io/apimachinery/pkg/runtime.RawExtension": {"RAW_EXTENSION", []field{{name: "raw", number: 1, typ: "bytes"}}},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time": {"TIME", []field{
		{name: "seconds", number: 1, typ: "int64"}, {name: "nanos", number: 2, typ: "int32"}}},
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": {"MICRO_TIME", []field{
		{name: "seconds", number: 1, typ: "int64"}, {name: "nanos", number: 2, typ: "int32"}}},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                 {"DURATION", []field{{name: "duration", number: 1, typ: "int64"}}},
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                 {"FIELDS_V1", []field{{name: "Raw", number: 1, typ: "bytes"}}},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": {"ANY", []field{{name: "raw", number: 1, typ: "bytes"}}},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": {"SCHEMA_OR_LIST", []field{
		{name: "schema", number: 1, typ: "JSONSchemaProps"}, {name: "jSONSchemas", number: 2, typ: "JSONSchemaProps", shape: "repeated"}}},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": {"SCHEMA_OR_BOOL", []field{
		{name: "allows", number: 1, typ: "bool"}, {name: "schema", number: 2, typ: "JSONSchemaProps"}}},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": {"SCHEMA_OR_STRINGS", []field{
		{name: "schema", number: 1, typ: "JSONSchemaProps"}, {name: "property", number: 2, typ: "string", shape: "repeated"}}},
}

// Go types of these packages that are not wire types.
var skipped = map[string]bool{
	"k8s.io/apimachinery/pkg/apis/meta/v1.InternalEvent": true,
	"k8s.io/apimachinery/pkg/apis/meta/v1.Timestamp":     true,
	"k8s.io/apimachinery/pkg/apis/meta/v1.TypeMeta":      true,
	"k8s.io/apimachinery/pkg/runtime.TypeMeta":           true,
	"k8s.io/apimachinery/pkg/runtime.Unknown":            true,
	"k8s.io/apimachinery/pkg/api/resource.QuantityValue": true,
	"k8s.io/api/core/v1.RangeAllocation":                 true,
}

// The messages without fields.
var emptyMessages = map[string]bool{
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceSubresourceStatus": true,
	"k8s.io/api/scheduling/v1alpha2.BasicSchedulingPolicy":                                     true,
}

func load(dir string, s source) (*pkg, error) {
	p := &pkg{source: s, types: map[string]*decl{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s: no Go files: %v", dir, err)
	}
	sort.Strings(names)
	fset := token.NewFileSet()
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasSuffix(base, "_test.go") || strings.HasPrefix(base, "zz_") ||
			strings.HasPrefix(base, "generated") || base == "fieldsv1_string.go" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.name = file.Name.Name
		imports := map[string]string{}
		for _, i := range file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			alias := filepath.Base(path)
			if alias == "v1" {
				alias = filepath.Base(filepath.Dir(path)) + "v1"
			}
			if i.Name != nil {
				alias = i.Name.Name
			}
			imports[alias] = path
			if i.Name == nil {
				imports[filepath.Base(path)] = path
			}
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				doc := g.Doc.Text() + t.Doc.Text()
				p.types[t.Name.Name] = &decl{t, rawDoc(g.Doc) + doc, imports, fset.Position(t.Pos())}
				p.order = append(p.order, t.Name.Name)
			}
		}
	}
	return p, nil
}

func rawDoc(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, l := range c.List {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// What a Go type comes to.
type resolved struct {
	proto   string // scalar name or message reference
	shape   string
	pointer bool
	isValue bool   // a struct held by value
	goType  string // as Go's reflection prints it
	plain   string // the same with named strings, lists and maps replaced by what they are
}

func (w *world) build(p *pkg) error {
	for _, name := range p.order {
		d := p.types[name]
		full := p.goPath + "." + name
		if skipped[full] {
			continue
		}
		if s, ok := scalars[full]; ok {
			m := &message{name: name, scalar: s.kind}
			for _, f := range s.fields {
				c := f
				m.fields = append(m.fields, &c)
			}
			p.messages = append(p.messages, m)
			continue
		}
		if a, ok := d.spec.Type.(*ast.ArrayType); ok {
			if id, ok := a.Elt.(*ast.Ident); ok && id.Name == "string" {
				p.messages = append(p.messages, &message{name: name, scalar: "STRING_LIST", fields: []*field{
					{name: "items", number: 1, typ: "string", shape: "repeated"}}})
			}
			continue
		}
		if sel, ok := d.spec.Type.(*ast.SelectorExpr); ok { // type List metav1.List
			q := w.packages[d.imports[sel.X.(*ast.Ident).Name]]
			if q == nil {
				continue
			}
			d = q.types[sel.Sel.Name]
			m, err := w.message(q, name, d)
			if err != nil {
				return err
			}
			m.name = name
			for _, f := range m.fields {
				if q.types[f.typ] != nil {
					f.typ = protoPackage(q.goPath) + "." + f.typ
				}
			}
			p.messages = append(p.messages, m)
			continue
		}
		if _, ok := d.spec.Type.(*ast.StructType); !ok || !ast.IsExported(name) {
			continue
		}
		m, err := w.message(p, name, d)
		if err != nil {
			return err
		}
		if m != nil {
			p.messages = append(p.messages, m)
		}
	}
	return nil
}

func (w *world) message(p *pkg, name string, d *decl) (*message, error) {
	m := &message{name: name}
	facts := w.openapi[p.goPath+"."+name]
	if facts != nil {
		m.atomic = facts.atomic
		m.unions = facts.unions
	}
	hasJSON, numbered := false, 0
	for _, f := range d.spec.Type.(*ast.StructType).Fields.List {
		out, err := w.field(p, d, f)
		if err != nil {
			return nil, fmt.Errorf("%s.%v: %v", name, f.Names, err)
		}
		if out == nil {
			continue
		}
		hasJSON = true
		if out.goName == typeMeta {
			m.top = true
			continue
		}
		if out.number != 0 {
			numbered++
		}
		if facts != nil && !out.inline {
			ff, ok := facts.fields[out.json()]
			if !ok {
				return nil, fmt.Errorf("%s.%s is not in OpenAPI", name, out.json())
			}
			out.facts = *ff
		}
		// A field that is always written has the default zero: that goes without saying.
		if zero := out.facts.defaultVal; out.always && !out.pointer &&
			(zero == `""` || zero == "0" || zero == "false") {
			out.facts.defaultVal = ""
		}
		m.fields = append(m.fields, out)
	}
	if !hasJSON && !emptyMessages[p.goPath+"."+name] {
		return nil, nil
	}
	if numbered == 0 && len(m.fields) > 0 {
		m.jsonOnly = true
		for i, f := range m.fields {
			f.number = i + 1
			if f.name == "" {
				return nil, fmt.Errorf("%s.%s: inlined without a number", name, f.goName)
			}
		}
	} else if numbered != len(m.fields) {
		return nil, fmt.Errorf("%s: %d of %d fields have numbers", name, numbered, len(m.fields))
	}
	return m, nil
}

const typeMeta = "TypeMeta"

// The JSON name.
func (f *field) json() string {
	if f.jsonName != "" {
		return f.jsonName
	}
	return f.name
}

// One field of a struct; nil for what JSON does not have.
func (w *world) field(p *pkg, d *decl, f *ast.Field) (*field, error) {
	if f.Tag == nil {
		return nil, nil
	}
	raw, _ := strconv.Unquote(f.Tag.Value)
	tag := reflect.StructTag(raw)
	json, ok := tag.Lookup("json")
	if !ok || json == "-" {
		return nil, nil
	}
	parts := strings.Split(json, ",")
	r, err := w.resolve(p, d, f.Type)
	if err != nil {
		return nil, err
	}
	if parts[0] == "" && len(f.Names) == 0 && r.proto == typeMeta {
		return &field{goName: typeMeta}, nil
	}
	out := &field{name: parts[0], typ: r.proto, goType: r.goType, plainType: r.plain, shape: r.shape,
		pointer: r.pointer, inline: parts[0] == ""}
	if len(f.Names) > 0 {
		out.goName = f.Names[0].Name
	} else {
		out.goName = out.typ[strings.LastIndex(out.typ, ".")+1:]
	}
	omitempty := false
	for _, o := range parts[1:] {
		omitempty = omitempty || o == "omitempty"
		out.omitzero = out.omitzero || o == "omitzero"
	}
	// Go's omitempty means nothing for a struct.
	out.always = (!omitempty || (r.isValue && !r.pointer && r.shape == "")) && !out.omitzero || out.inline
	if pb, ok := tag.Lookup("protobuf"); ok {
		if err := out.readTag(pb); err != nil {
			return nil, err
		}
	}
	if !out.inline && out.name != parts[0] {
		out.jsonName = parts[0]
	}
	out.immutable = strings.Contains(rawDoc(f.Doc), "+k8s:immutable")
	return out, nil
}

// Takes number and name from a protobuf tag: "bytes,1,opt,name=metadata".
func (f *field) readTag(tag string) error {
	pieces := strings.Split(tag, ",")
	if len(pieces) < 2 {
		return fmt.Errorf("protobuf tag %q", tag)
	}
	var err error
	if f.number, err = strconv.Atoi(pieces[1]); err != nil {
		return fmt.Errorf("protobuf tag %q", tag)
	}
	for _, piece := range pieces {
		if n, ok := strings.CutPrefix(piece, "name="); ok {
			f.name = n
		}
	}
	if f.name == "" {
		f.name = strings.ToLower(f.goName[:1]) + f.goName[1:]
	}
	return nil
}

var basics = map[string]string{
	"string": "string", "bool": "bool", "int32": "int32", "int64": "int64", "int": "int64",
	"uint32": "uint32", "uint8": "uint32", "float64": "double", "float32": "double",
}

func (w *world) resolve(p *pkg, d *decl, e ast.Expr) (resolved, error) {
	switch t := e.(type) {
	case *ast.StarExpr:
		r, err := w.resolve(p, d, t.X)
		r.pointer = true
		return r, err
	case *ast.ArrayType:
		if id, ok := t.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return resolved{proto: "bytes", goType: "[]uint8", plain: "[]uint8"}, nil
		}
		r, err := w.resolve(p, d, t.Elt)
		if err == nil && r.shape != "" {
			err = fmt.Errorf("list of lists")
		}
		return resolved{proto: r.proto, shape: "repeated", goType: "[]" + r.goType, plain: "[]" + r.plain}, err
	case *ast.MapType:
		r, err := w.resolve(p, d, t.Value)
		if err == nil && r.shape != "" {
			err = fmt.Errorf("map of lists")
		}
		key, keyErr := w.resolve(p, d, t.Key)
		if err == nil {
			err = keyErr
		}
		return resolved{proto: r.proto, shape: "map", goType: "map[" + key.goType + "]" + r.goType,
			plain: "map[string]" + r.plain}, err
	case *ast.InterfaceType:
		return resolved{proto: anyType, isValue: true, goType: "interface {}", plain: "string"}, nil
	case *ast.Ident:
		return w.named(p, d, p, t.Name)
	case *ast.SelectorExpr:
		alias := t.X.(*ast.Ident).Name
		path := d.imports[alias]
		if path == "k8s.io/apimachinery/pkg/types" {
			return resolved{proto: "string", goType: "types." + t.Sel.Name, plain: "string"}, nil
		}
		q := w.packages[path]
		if q == nil {
			return resolved{}, fmt.Errorf("unknown package %s (%s)", alias, path)
		}
		return w.named(p, d, q, t.Sel.Name)
	}
	return resolved{}, fmt.Errorf("type %T", e)
}

// Of any.proto, which is written by hand.
const anyType = "sx.AnyValue"

// The type `name` of package q, as seen from package p.
func (w *world) named(p *pkg, d *decl, q *pkg, name string) (resolved, error) {
	if b, ok := basics[name]; ok && q == p {
		plain := b
		if b == "double" {
			plain = "float64"
		}
		return resolved{proto: b, goType: name, plain: plain}, nil
	}
	full := q.goPath + "." + name
	if name == "TypeMeta" {
		return resolved{proto: name}, nil
	}
	t := q.types[name]
	if t == nil {
		return resolved{}, fmt.Errorf("unknown type %s", full)
	}
	goType := q.name + "." + name
	self := resolved{isValue: true, goType: goType, plain: goType}
	ref := name
	if q != p {
		ref = protoPackage(q.goPath) + "." + name
	}
	self.proto = ref
	if _, ok := scalars[full]; ok {
		return self, nil
	}
	switch u := t.spec.Type.(type) {
	case *ast.StructType:
		return self, nil
	case *ast.InterfaceType:
		return resolved{}, fmt.Errorf("interface %s", full)
	case *ast.ArrayType:
		if id, ok := u.Elt.(*ast.Ident); ok && id.Name == "string" {
			self.isValue, self.plain = false, "[]string"
			return self, nil // a list with a message of its own
		}
	case *ast.SelectorExpr:
		if _, ok := u.X.(*ast.Ident); ok && name == "List" {
			return self, nil
		}
	}
	r, err := w.resolve(q, t, t.spec.Type)
	if !t.spec.Assign.IsValid() { // an alias has no name of its own
		r.goType = goType
	}
	return r, err
}

func protoPackage(goPath string) string {
	return strings.ReplaceAll(modelPrefix(goPath), "-", "_")
}

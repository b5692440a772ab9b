package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"sort"
	"strconv"
)

type typeFacts struct {
	atomic bool
	unions string // JSON
	fields map[string]*fieldFacts
}

type fieldFacts struct {
	required   bool
	defaultVal string // JSON
	list       string
	keys       []string
	atomic     bool
	granular   bool
	mergeKey   string
	strategies []string
	enum       []string
	format     string
}

// Reads the literals of the generated OpenAPI definitions: "k8s.io/api/core/v1.Pod" -> facts.
func readOpenAPI(path string) (map[string]*typeFacts, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		return nil, err
	}
	imports := map[string]string{}
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if i.Name != nil {
			imports[i.Name.Name] = p
		} else {
			imports[p[lastSlash(p)+1:]] = p
		}
	}
	functions := map[string]*ast.FuncDecl{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			functions[f.Name.Name] = f
		}
	}
	out := map[string]*typeFacts{}
	ast.Inspect(functions["GetOpenAPIDefinitions"], func(n ast.Node) bool {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		// v1.Pod{}.OpenAPIModelName(): schema_..._Pod(ref)
		key, ok := kv.Key.(*ast.CallExpr)
		if !ok {
			return true
		}
		typ, ok := key.Fun.(*ast.SelectorExpr).X.(*ast.CompositeLit).Type.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		f := functions[kv.Value.(*ast.CallExpr).Fun.(*ast.Ident).Name]
		if facts := definition(f); facts != nil {
			out[imports[typ.X.(*ast.Ident).Name]+"."+typ.Sel.Name] = facts
		}
		return false
	})
	if len(out) < 500 {
		return nil, fmt.Errorf("%s: only %d definitions found", path, len(out))
	}
	return out, nil
}

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

func definition(f *ast.FuncDecl) *typeFacts {
	ret, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok {
		return nil
	}
	lit, ok := ret.Results[0].(*ast.CompositeLit)
	if !ok {
		return nil
	}
	schema := object(object(eval(lit))["Schema"])
	props := object(schema["SchemaProps"])
	t := &typeFacts{fields: map[string]*fieldFacts{}}
	ext := object(object(schema["VendorExtensible"])["Extensions"])
	t.atomic = ext["x-kubernetes-map-type"] == "atomic"
	if unions, ok := ext["x-kubernetes-unions"]; ok {
		text, _ := json.Marshal(unions)
		t.unions = string(text)
	}
	for name, p := range object(props["Properties"]) {
		t.fields[name] = property(object(p))
	}
	for _, r := range list(props["Required"]) {
		t.fields[r.(string)].required = true
	}
	return t
}

func property(p map[string]any) *fieldFacts {
	f := &fieldFacts{}
	props := object(p["SchemaProps"])
	ext := object(object(p["VendorExtensible"])["Extensions"])
	f.list, _ = ext["x-kubernetes-list-type"].(string)
	for _, k := range list(ext["x-kubernetes-list-map-keys"]) {
		f.keys = append(f.keys, k.(string))
	}
	f.atomic = ext["x-kubernetes-map-type"] == "atomic"
	f.granular = ext["x-kubernetes-map-type"] == "granular"
	f.mergeKey, _ = ext["x-kubernetes-patch-merge-key"].(string)
	if s, ok := ext["x-kubernetes-patch-strategy"].(string); ok {
		f.strategies = splitComma(s)
	}
	f.format, _ = props["Format"].(string)
	values := list(props["Enum"])
	for _, elements := range []string{"Items", "AdditionalProperties"} {
		if values == nil {
			values = list(object(object(object(props[elements])["Schema"])["SchemaProps"])["Enum"])
		}
	}
	for _, v := range values {
		f.enum = append(f.enum, v.(string))
	}
	sort.Strings(f.enum)
	switch d := props["Default"].(type) {
	case nil:
	case map[string]any:
	default:
		text, _ := json.Marshal(d)
		f.defaultVal = string(text)
	}
	return f
}

func splitComma(s string) []string {
	var out []string
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != ',' {
			i++
		}
		out = append(out, s[:i])
		if i == len(s) {
			break
		}
		s = s[i+1:]
	}
	return out
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { l, _ := v.([]any); return l }

// Constants of the Go API that the definitions name as defaults.
var constants = map[string]string{
	"AzureSharedBlobDisk": "Shared", "AzureDataDiskCachingReadWrite": "ReadWrite",
}

// A Go literal as plain maps, lists and values; calls (references) become nil.
func eval(e ast.Expr) any {
	switch t := e.(type) {
	case *ast.BasicLit:
		switch t.Kind {
		case token.STRING:
			s, _ := strconv.Unquote(t.Value)
			return s
		case token.INT:
			n, _ := strconv.ParseInt(t.Value, 0, 64)
			return n
		case token.FLOAT:
			n, _ := strconv.ParseFloat(t.Value, 64)
			return n
		}
	case *ast.Ident:
		return t.Name == "true"
	case *ast.SelectorExpr:
		if v, ok := constants[t.Sel.Name]; ok {
			return v
		}
		panic("unknown constant " + t.Sel.Name)
	case *ast.UnaryExpr:
		return eval(t.X)
	case *ast.CompositeLit:
		if _, ok := t.Type.(*ast.ArrayType); ok {
			out := []any{}
			for _, x := range t.Elts {
				out = append(out, eval(x))
			}
			return out
		}
		out := map[string]any{}
		for _, x := range t.Elts {
			kv, ok := x.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key := ""
			switch k := kv.Key.(type) {
			case *ast.Ident:
				key = k.Name
			case *ast.BasicLit:
				key, _ = strconv.Unquote(k.Value)
			default:
				continue
			}
			out[key] = eval(kv.Value)
		}
		return out
	}
	return nil
}

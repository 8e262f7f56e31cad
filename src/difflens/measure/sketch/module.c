/* What Python sees of the sketch: a buffer in, sums added to; no arithmetic here. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fenv.h>
#include <string.h>

#include "sketch.h"

static const char *const names[FORMS] = {
    [F64] = "F64", [F32] = "F32", [F16] = "F16", [BF16] = "BF16", [I64] = "I64", [U64] = "U64",
    [I32] = "I32", [U32] = "U32", [I16] = "I16", [U16] = "U16", [BYTES] = "BYTES",
    [NIBBLES] = "NIBBLES",
};

static enum form form_of(const char *name)
{
    for (int form = 0; form < FORMS; form++)
        if (strcmp(name, names[form]) == 0) return (enum form)form;
    return FORMS;
}

/* Check what Python passed; 0 with an error set where it does not fit together. */
static int check(enum form form, Py_ssize_t size, long long row, Py_ssize_t sums, Py_ssize_t table)
{
    Py_ssize_t wanted = form == BYTES ? 256 * 8 : form == NIBBLES ? 16 * 8 : 0;
    if (form == FORMS) PyErr_SetString(PyExc_ValueError, "the sketch cannot read such elements");
    else if (size % (difflens_form_bits[form] > 8 ? difflens_form_bits[form] / 8 : 1))
        PyErr_Format(PyExc_ValueError, "%zd bytes are no whole number of elements", size);
    else if (row < 0 || sums != BUCKETS * 8 || table != wanted)
        PyErr_Format(PyExc_ValueError, "row %lld, %zd bytes of sums and %zd of a table cannot be",
                     row, sums, table);
    else return 1;
    return 0;
}

static PyObject *add(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data, out, table;
    const char *name;
    long long row;
    if (!PyArg_ParseTuple(args, "y*sLy*w*", &data, &name, &row, &table, &out)) return NULL;
    enum form form = form_of(name);
    int good = check(form, data.len, row, out.len, table.len);
    if (good) {
        double sums[BUCKETS], values[256];
        size_t n = (size_t)data.len * 8 / difflens_form_bits[form];
        memcpy(sums, out.buf, sizeof sums); /* the caller's bytes may be unaligned */
        memcpy(values, table.buf, (size_t)table.len);
        Py_BEGIN_ALLOW_THREADS
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV); /* a framework may have set subnormals to count as zero */
        difflens_sketch(form, data.buf, n, (uint64_t)row, values, sums);
        fesetenv(&caller);
        Py_END_ALLOW_THREADS
        memcpy(out.buf, sums, sizeof sums);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&table);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"add", add, METH_VARARGS,
     "add(data, form, row, table, sums)\n\n"
     "Add encoded elements, from row `row` on, to 1024 sums of F64."},
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *module)
{
    return PyModule_AddStringConstant(module, "NAME", "compiled");
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, start}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_sketch",
    .m_doc = "The compiled sketch.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__sketch(void)
{
    return PyModuleDef_Init(&definition);
}

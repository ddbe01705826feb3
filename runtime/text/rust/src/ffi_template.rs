// The C functions for chat templates. Contract: ../../troupe_text.h.
use crate::ffi::{answer, free_boxed, OwnedString, Status, View};
use crate::template::{ChatTemplate, Limits, Request};

#[repr(C)]
pub struct Render {
    messages_json: View,
    tools_json: View,
    variables_json: View,
    add_generation_prompt: i32,
    now_unix_s: i64,
}

/// # Safety See the header; this holds for every function below.
#[no_mangle]
pub unsafe extern "C" fn troupe_text_template_new(
    source: View,
    out: *mut *mut ChatTemplate,
    error: *mut OwnedString,
) -> Status {
    answer("reading a chat template", out, error, || {
        let template = ChatTemplate::new(source.text("the chat template")?)?;
        Ok(Box::into_raw(Box::new(template)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_template_free(template: *mut ChatTemplate) {
    free_boxed(template);
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_template_render(
    template: *const ChatTemplate,
    request: *const Render,
    limits: *const Limits,
    out: *mut OwnedString,
    error: *mut OwnedString,
) -> Status {
    answer("rendering a chat template", out, error, || {
        let raw = &*request;
        let request = Request {
            messages_json: raw.messages_json.text("the list of messages")?,
            tools_json: raw.tools_json.text("the list of tools")?,
            variables_json: raw.variables_json.text("the variables of the chat template")?,
            add_generation_prompt: raw.add_generation_prompt != 0,
            now_unix_s: raw.now_unix_s,
        };
        (*template).render(&request, *limits).map(OwnedString::new)
    })
}
